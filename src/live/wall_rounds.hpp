// WallRounds: when the live loop looks where the memory of GPUs ends, and that of processes before it does, and tells
// what has changed as events.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "live/known_walls.hpp"

namespace vramtrack {

/// One per live loop. Not thread-safe.
class WallRounds {
 public:
  static constexpr double kPace_s = 10;

  explicit WallRounds(const SourcesConfig& sources) : walls_(sources) {}

  /// Call it with each poll's `batch`, which may report walls that its sources know. Adds the capacity of each device
  /// that is new or whose total its driver has adjusted, the latter with a note. If a round is due, adds a
  /// capacity of each process that has samples there for each other wall that is new or has moved, or with 0 bytes for
  /// one that was lifted. Adds notes for people: once for all that share a wall, that of the nearest wall first. Cost
  /// of a round: WallReader's, for each process that holds memory.
  void add(const Catalog& catalog, Timestamp now, Batch& batch);

 private:
  using Process = std::tuple<std::string, std::uint32_t, std::uint64_t>;  ///< device id, pid, start ticks
  using Limits = std::map<std::string, std::uint64_t>;                    ///< bytes by the wall's name
  using Device = std::map<Process, Walled>;                               ///< the processes of one

  void look_at_devices(const Catalog& catalog, Timestamp now, Batch& batch);
  void look(const Catalog& catalog, Timestamp now, Batch& batch);
  void note(const Catalog& catalog, Timestamp now, Batch& batch);

  KnownWalls walls_;
  Timestamp next_ = Timestamp::min();
  Timestamp last_ = Timestamp::min();
  std::uint64_t device_revision_ = 0;            ///< the revision of the catalog, as of the last look at its devices
  std::map<std::string, std::uint64_t> totals_;  ///< bytes by device id, as reported
  std::map<Process, Limits> known_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> reported_;  ///< bytes by device id and name
  std::map<std::string, Device> devices_;                                  ///< as of the last look, by id
};

}  // namespace vramtrack
