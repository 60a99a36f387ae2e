// Session: an Engine whose alerts and events are printed as they happen. Shared by watch, replay and simulate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "core/config.hpp"
#include "engine/engine.hpp"
#include "source/source.hpp"

namespace vramtrack::cli {

/// Not thread-safe. Builds no View and no text in ticks in which nothing is to be printed.
class Session {
 public:
  struct Counts {
    std::uint64_t ticks = 0;
    std::uint64_t samples = 0;
    std::uint64_t raised = 0;
    std::uint64_t cleared = 0;
  };

  /// `in_place`: on a terminal, the status table is drawn over the one before. `catalog` and `console` must
  /// outlive the session.
  Session(const Config& config, Catalog& catalog, Console& console, bool json, bool in_place);

  /// Called at every raise and clear, before it is printed.
  void on_alert(std::function<void(const AlertChange&)> callback) { on_alert_ = std::move(callback); }

  /// Takes in one tick, whole, and prints what it brought about.
  void take(const Batch& tick);
  /// Prints the status: a table, or with json one analysis line per series.
  void status();
  /// The same as it stands at the end, unless it has just been shown; with `explain` in full.
  void last_status(bool explain);
  /// What a source had to tell since the last call; on standard error.
  void tell_notes(const SourceNotes& notes, std::size_t& told);

  [[nodiscard]] std::shared_ptr<const View> view(bool explain = false) const { return engine_.view(explain); }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Writes `text` above a table that is drawn in place.
  void print(const std::string& text);

 private:
  void print_event(const Event& event);

  Catalog& catalog_;
  Console& console_;
  Engine engine_;
  Block block_;
  bool json_;
  bool in_place_;
  std::vector<AlertChange> changes_;
  std::function<void(const AlertChange&)> on_alert_;
  std::optional<Timestamp> shown_;  ///< time of the last status
  Counts counts_;
};

/// "3 alerts raised, 1 cleared".
std::string alert_counts(const Session::Counts& counts);

}  // namespace vramtrack::cli
