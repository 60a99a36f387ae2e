// Walls of processes: limits that others have set below what the device has, as events tell them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/sample.hpp"
#include "engine/series_state.hpp"

namespace vramtrack {

/// Not thread-safe.
class Walls {
 public:
  /// The wall at which a process ends first.
  struct Nearest {
    double bytes = 0;       ///< of the wall
    double used_bytes = 0;  ///< of that, by all processes that share it
    double end_bytes = 0;   ///< the process cannot grow beyond, as long as the others hold what they hold
    std::vector<const SeriesState*> sharing;  ///< of the device, the process among them; valid until the next batch
    std::string name;                         ///< who set it, and where; untrusted
  };

  /// REQUIRES: a capacity with a pid. One of 0 bytes lifts the wall of that name.
  void take(const Event& event);
  /// Of a process_used series; nullopt: no wall is known. O(series of its device) for each of its walls.
  [[nodiscard]] std::optional<Nearest> nearest(const SeriesState& process) const;
  /// The series has ended.
  void forget(const SeriesKey& process) { walls_.erase(key_of(process)); }

 private:
  using Key = std::tuple<std::string, std::string, std::uint32_t, std::uint64_t>;  ///< host, device, pid, start
  static Key key_of(const SeriesKey& key) { return {key.host, key.device_id, key.pid, key.pid_start_ticks}; }
  [[nodiscard]] bool has(const SeriesKey& process, const std::string& name) const;

  std::map<Key, std::map<std::string, double>> walls_;  ///< bytes by name
};

}  // namespace vramtrack
