// Walls: limits on a process's GPU memory that others have set, below what its GPU has. A limit that only ranks
// processes (dmem.min, dmem.low) is not a wall.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/series.hpp"

namespace vramtrack {

/// One limit. Processes whose walls have the same name on the same device share it: together they may hold no more.
struct Wall {
  std::string device_id;
  std::uint64_t bytes = 0;
  std::string name;  ///< who set it, and where: "dmem.max of /kubepods.slice/pod1"; untrusted
  friend bool operator==(const Wall&, const Wall&) = default;
};

/// The lines of a dmem.* file ("drm/0000:03:00.0/vram0 8514437120"), by region. "max" and anything not understood are
/// ignored. Pure.
std::map<std::string, std::uint64_t> parse_dmem(std::string_view text);

/// The limits that a process's environment names for its CUDA devices, by CUDA's own numbers. Pure.
/// "0=2G,1=512MB" of CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; nullopt if one entry is not understood: MPS then ignores all.
std::optional<std::map<std::size_t, std::uint64_t>> parse_mps_limits(std::string_view text);
/// The value of HAMi's CUDA_DEVICE_MEMORY_LIMIT_0: "3000m", "2g".
std::optional<std::uint64_t> parse_hami_limit(std::string_view text);
/// per_process_memory_fraction of PYTORCH_ALLOC_CONF (or PYTORCH_CUDA_ALLOC_CONF).
std::optional<double> parse_torch_fraction(std::string_view text);

/// Reads walls under /proc and the cgroup file system. Caches what does not change while a process lives. Not
/// thread-safe.
class WallReader {
 public:
  /// `sys_root` is "/sys" except in tests; the cgroup file system is below it.
  WallReader(std::string proc_root, std::string sys_root)
      : proc_root_(std::move(proc_root)), cgroup_root_(std::move(sys_root) + "/fs/cgroup") {}

  /// The walls of `process` on `devices` (this machine's GPUs and MIG instances), in the order cgroup from its own
  /// up, MPS, HAMi, PyTorch. Only root may read the environment of other users' processes. Cost: one small file per
  /// folder of its cgroup; the first time also its environment and, if that names HAMi, its mappings.
  std::vector<Wall> read(const ProcessInfo& process, const std::vector<DeviceInfo>& devices);

  /// Forgets processes that are not in `living` (pid and start ticks).
  void keep(const std::map<std::uint32_t, std::uint64_t>& living);

 private:
  struct Environment {
    std::uint64_t start_ticks = 0;
    std::string mps, hami, torch, visible, order;
    std::map<std::size_t, std::string> hami_of;  ///< by CUDA's number
    bool has_hami = false;                       ///< whether its library is loaded
  };
  const Environment& environment_of(const ProcessInfo& process);
  void add_cgroup(const ProcessInfo& process, const std::vector<DeviceInfo>& devices, std::vector<Wall>& out);
  void add_environment(const ProcessInfo& process, const std::vector<DeviceInfo>& devices, std::vector<Wall>& out);

  std::string proc_root_;
  std::string cgroup_root_;
  std::map<std::uint32_t, Environment> environments_;  ///< by pid
};

}  // namespace vramtrack
