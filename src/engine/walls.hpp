// Walls of processes: limits that others have set below the device's capacity, as events report them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/sample.hpp"
#include "core/wall.hpp"
#include "engine/series_state.hpp"

namespace vramtrack {

/// Not thread-safe.
class Walls {
 public:
  /// The wall at which a process ends first.
  struct Nearest {
    double bytes = 0;       ///< of the wall
    double used_bytes = 0;  ///< the part in use, by all processes that share it
    double end_bytes = 0;   ///< the process cannot grow beyond this while the others hold what they hold
    std::vector<const SeriesState*> sharing;  ///< those on the device, with the process; valid until the next batch
    std::string name;                         ///< who set it, and where; untrusted
  };

  /// REQUIRES: a capacity with a pid, or with a name: it is then that of the program that a recording without processes
  /// is about. One of 0 bytes lifts the wall with that name.
  void take(const Event& event);
  /// From here on, no wall is known.
  void lift_all() { walls_.clear(); }
  /// For a process_used series, or one of such a recording's device and allocator; nullopt: no wall is known. O(series
  /// of its device) for each of its walls.
  [[nodiscard]] std::optional<Nearest> nearest(const SeriesState& process) const;
  /// The series has ended, and `at` is the wall at which its memory did; nullopt if it did not end at one.
  void end(const SeriesState& series, const std::optional<MemoryWall>& at);
  /// For a series that has ended; nullptr if it did not end at a wall.
  [[nodiscard]] const MemoryWall* at_end(SeriesId series) const;
  /// The series is forgotten, or starts over.
  void forget(SeriesId series) { ended_.erase(series); }

 private:
  using Key = std::tuple<std::string, std::string, std::uint32_t, std::uint64_t>;  ///< host, device, pid, start
  static Key key_of(const SeriesKey& key) { return {key.host, key.device_id, key.pid, key.pid_start_ticks}; }
  [[nodiscard]] std::optional<Nearest> of_recording(const SeriesState& series) const;
  [[nodiscard]] bool has(const SeriesKey& process, const std::string& name) const;

  std::map<Key, std::map<std::string, double>> walls_;  ///< bytes by name
  std::map<SeriesId, MemoryWall> ended_;
};

}  // namespace vramtrack
