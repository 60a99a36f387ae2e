// FleetWatch: a continuous scan. Each pass reads new data and judges it with the state of the engines. Everything can
// be read from the server again, so nothing is stored.
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
  /// The time in its plan is ignored.
  ScanOptions scan;
  /// When a machine is seen for the first time, this much of its past is judged first.
  std::int64_t history_ms = 86'400'000;
  /// The longest delay with which samples may reach the server.
  std::int64_t late_ms = 120'000;
};

/// Used from one thread.
class FleetWatch {
 public:
  /// `mapping` must outlive it. Servers of `reader` that do not answer are tried again in each pass.
  FleetWatch(Reader reader, const Mapping& mapping, WatchOptions options);
  ~FleetWatch();
  FleetWatch(const FleetWatch&) = delete;
  FleetWatch& operator=(const FleetWatch&) = delete;

  /// Reads up to `now_ms` and judges. Machines that could not be read, and servers that do not answer, are in
  /// `unread`; the next pass continues where they stopped. A failure: no server could be queried; then latest() does
  /// not change.
  tl::expected<void, HttpFailure> pass(std::int64_t now_ms);

  /// All machines, with their newest verdicts. Counts such as `samples` are those of the last pass.
  [[nodiscard]] const Scan& latest() const { return latest_; }
  /// The servers that answered in the last pass; null: none ever did.
  [[nodiscard]] const Reader* here() const { return here_ ? &*here_ : nullptr; }

 private:
  struct Watched;
  void judge(const Machine& machine);
  /// Merges names that turned out to belong to one machine: it continues under the name that represents all; if several
  /// were watched, the merged machine is read again.
  void join();
  /// Drops machines that have had no samples for longer than the history.
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
