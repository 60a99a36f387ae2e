// WallRounds: when the live loop looks where the memory of processes ends before that of their GPU does, and tells what
// has changed as events.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "host/walls.hpp"

namespace vramtrack {

/// One per live loop. Not thread-safe.
class WallRounds {
 public:
  static constexpr double kPace_s = 10;

  explicit WallRounds(const SourcesConfig& sources) : reader_(sources.proc_root, sources.sys_root) {}

  /// Call it with each poll's `batch`. If a round is due, adds a capacity of each process that has samples there for
  /// each wall that is new or has moved, or with 0 bytes for one that was lifted; and once for all that share it, a
  /// note for people. Cost of a round: WallReader's, for each process that holds memory.
  void add(const Catalog& catalog, Timestamp now, Batch& batch);

 private:
  using Process = std::tuple<std::string, std::uint32_t, std::uint64_t>;  ///< device id, pid, start ticks
  using Limits = std::map<std::string, std::uint64_t>;                    ///< bytes by the wall's name

  void compare(const SeriesKey& key, const ProcessInfo& process, const Limits& now, Timestamp time, Batch& batch);
  void note(const SeriesKey& key, const std::string& name, std::uint64_t before, std::uint64_t now, Timestamp time,
            Batch& batch);

  WallReader reader_;
  Timestamp next_ = Timestamp::min();
  Timestamp last_ = Timestamp::min();
  std::map<Process, Limits> known_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> told_;  ///< bytes by device id and name
  const Catalog* catalog_ = nullptr;                                   ///< of the round
};

}  // namespace vramtrack
