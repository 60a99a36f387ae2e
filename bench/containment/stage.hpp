// The stage: fake GPUs, a live loop whose time passes faster, a runner of policies, and programs that are started on
// them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "act/audit.hpp"
#include "act/runner.hpp"
#include "board.hpp"
#include "core/config.hpp"
#include "live/loop.hpp"

namespace bench {

struct StageOptions {
  std::string folder;        ///< there already, and empty; holds the store, the record of acts and the board
  std::string nvml_library;  ///< the fake one
  std::string policies;      ///< TOML
  double speed = 60;
  double interval_s = 5;  ///< of the watch
  double stall_minutes = 10;
  std::uint32_t devices = 8;
  std::uint64_t device_mib = 81920;
  std::size_t lives = 1000;
};

/// An alert as it was raised or cleared, in the time of the board.
struct Told {
  vramtrack::SeriesKey key;
  vramtrack::Alert alert;
  vramtrack::AlertNews news;
  std::int64_t at_us = 0;
};

class Stage {
 public:
  explicit Stage(StageOptions options);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] Slot& slot(std::size_t index) { return board_[index]; }
  /// Starts the program of the slot under that name, which it keeps in its command.
  void start(std::size_t index, const std::string& name);
  /// Whether it has ended; it is waited for.
  bool has_ended(std::size_t index);
  /// Ends what is left of it.
  void end(std::size_t index);
  /// Waits for the next tick, and does it.
  void tick();
  /// Minutes of the watch so far.
  [[nodiscard]] double minutes() const { return minute_of(now_us()); }
  /// For a time of the board, and of a time of the watch: minutes of the watch.
  [[nodiscard]] double minute_of(std::int64_t at_us) const {
    return static_cast<double>(at_us - began_us_) * 1e-6 * options_.speed / 60;
  }
  [[nodiscard]] double minute_of(vramtrack::Timestamp at) const { return vramtrack::seconds_between(began_, at) / 60; }

  [[nodiscard]] double device_bytes() const { return static_cast<double>(options_.device_mib) * (1 << 20); }

  [[nodiscard]] const std::vector<Told>& told() const { return told_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  /// All acts so far.
  [[nodiscard]] std::vector<vramtrack::act::AuditEntry> acts() const;

 private:
  StageOptions options_;
  Slot* board_ = nullptr;
  std::map<std::size_t, pid_t> started_;
  std::int64_t began_us_ = 0;
  vramtrack::Timestamp began_;
  vramtrack::Config config_;
  std::unique_ptr<vramtrack::Loop> loop_;
  std::unique_ptr<vramtrack::act::Runner> runner_;
  std::vector<Told> told_;
  std::vector<std::string> warnings_;
};

/// Each prints what came of it. 0: as it should be.
int run_chaos(Stage& stage, std::size_t lives, std::size_t at_once, std::uint32_t seed, double speed);
int run_checkpoints(Stage& stage, std::size_t runs, std::uint32_t seed, double speed, std::uint64_t device_mib);

/// For a sorted list, at 0..1.
double quantile(std::vector<double> values, double at);

}  // namespace bench
