// KnownWalls: the limits on processes' GPU memory, as the files of this machine and its sources report them.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "host/walls.hpp"

namespace vramtrack {

/// Not thread-safe.
class KnownWalls {
 public:
  explicit KnownWalls(const SourcesConfig& sources) : reader_(sources.proc_root, sources.sys_root) {}

  /// Takes in the reports of the sources in `batch`: a driver may limit cgroups itself. Call it with each poll's batch.
  void take(const Batch& batch);
  /// Those of a process on one of `devices` (this machine's). Cost: one WallReader::read() per look().
  std::vector<Wall> of(const ProcessInfo& process, const std::vector<DeviceInfo>& devices,
                       const std::string& device_id);
  /// A new look begins: files are read again.
  void look() { read_.clear(); }
  /// Forgets processes that are not in `living` (pid and start ticks).
  void keep(const std::map<std::uint32_t, std::uint64_t>& living);

 private:
  using Process = std::tuple<std::string, std::uint32_t, std::uint64_t>;  ///< device id, pid, start ticks

  WallReader reader_;
  std::map<std::uint32_t, std::vector<Wall>> read_;                   ///< of this look, by pid
  std::map<Process, std::map<std::string, std::uint64_t>> reported_;  ///< by sources: bytes by the wall's name
};

/// A process on one device, and where its memory may end.
struct Walled {
  double bytes = 0;
  std::vector<Wall> walls;
};

/// The memory that the processes in `all`, those of one device, which share the wall hold together.
double used_of(const std::vector<Walled>& all, const std::string& wall);
/// The wall at which `process`, one of `all`, ends first; nullptr if it has none.
const Wall* nearest_wall(const Walled& process, const std::vector<Walled>& all);

}  // namespace vramtrack
