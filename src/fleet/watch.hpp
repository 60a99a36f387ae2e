// FleetWatch: a continuous scan. Each pass reads what is new and judges it with what the engines remember; all of
// that can be read from the server again, so nothing is stored.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fleet/context.hpp"
#include "fleet/scan.hpp"

namespace vramtrack::fleet {

struct WatchOptions {
  /// Its plan's time is not looked at.
  ScanOptions scan;
  /// For a machine that is seen for the first time, this much of its past is judged first.
  std::int64_t history_ms = 86'400'000;
  /// Samples may reach the server this much later than they were taken.
  std::int64_t late_ms = 120'000;
};

/// Used from one thread.
class FleetWatch {
 public:
  /// `mapping` must outlive it. Servers of `reader` that do not answer are asked again in each pass.
  FleetWatch(Reader reader, const Mapping& mapping, WatchOptions options);
  ~FleetWatch();
  FleetWatch(const FleetWatch&) = delete;
  FleetWatch& operator=(const FleetWatch&) = delete;

  /// Reads up to `now_ms` and judges. Machines that could not be read are in `unread`, as are servers that do not
  /// answer, and are read from where they were left in the next pass. A failure: nothing could be asked; what latest()
  /// gives stays.
  tl::expected<void, HttpFailure> pass(std::int64_t now_ms);

  /// All machines, with their newest verdicts. `samples` and the like count the last pass.
  [[nodiscard]] const Scan& latest() const { return latest_; }
  /// The servers that answered in the last pass; null: none ever did.
  [[nodiscard]] const Reader* here() const { return here_ ? &*here_ : nullptr; }

 private:
  struct Watched;
  void judge(const Machine& machine);
  /// Machines whose names turned out to be one machine's: one continues under the name that stands for all; where
  /// several were watched, the one they are is read again.
  void join();
  /// Takes the machines of which nothing came for longer than the history.
  void forget(std::int64_t now_ms);

  Reader reader_;
  std::optional<Reader> here_;
  const Mapping& mapping_;
  WatchOptions options_;
  Roster roster_;
  std::map<std::string, std::unique_ptr<Watched>> machines_;  ///< by Roster::machine_of()
  Images images_;
  Scan latest_;
  std::uint64_t passes_ = 0;
};

}  // namespace vramtrack::fleet
