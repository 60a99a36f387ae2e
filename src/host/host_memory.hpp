// The host's memory: of the machine, of a process, and where a cgroup ends it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

struct HostMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< what programs can still get without swapping: free, and caches that give way
  std::uint64_t swap_free_bytes = 0;
};

/// MemTotal and MemAvailable from the text of /proc/meminfo; nullopt if one is missing. Pure.
std::optional<HostMemory> parse_meminfo(std::string_view text);

/// The same from `proc_root`/meminfo. Cost: one small file.
std::optional<HostMemory> read_host_memory(const std::string& proc_root);

/// The part that a process holds.
struct ProcessMemory {
  std::uint64_t anonymous_bytes =
      0;  ///< what no file backs: anonymous, shared (as CUDA's pinned memory) and swapped out
  std::uint64_t resident_bytes = 0;           ///< including the pages of files that it has mapped
  std::optional<std::uint64_t> pinned_bytes;  ///< as the kernel counts it (VmPin)
  friend bool operator==(const ProcessMemory&, const ProcessMemory&) = default;
};

/// From the text of /proc/PID/status; nullopt for anything without memory (a kernel thread, a zombie) and for kernels
/// before 4.5. Pure.
std::optional<ProcessMemory> parse_process_memory(std::string_view status);
/// The same from `proc_root`/`pid`/status. Cost: one small file, some 25 us.
std::optional<ProcessMemory> read_process_memory(const std::string& proc_root, std::uint32_t pid);

/// Where the host's memory ends for a process.
struct HostLimit {
  std::string name;  ///< who set it: "memory.max of /system.slice/a.service", "the machine's memory"
  std::uint64_t bytes = 0;
  std::uint64_t available_bytes = 0;  ///< including caches that give way, and free swap
};

/// The nearest limit among the memory.max of `folder` (as in ProcessInfo::cgroup), those above it, and the machine's.
/// memory.high is not an end: it only slows down. `cgroup_root` is where cgroup v2 is mounted. Cost: one small file per
/// folder, three more per folder that has a limit.
HostLimit read_host_limit(const std::string& cgroup_root, const std::string& folder, const HostMemory& machine);

/// The folders of a cgroup from its own to the root, which is empty; none for a path that leads out of the file system.
std::vector<std::string> cgroup_folders(const std::string& folder);

}  // namespace vramtrack
