// The memory of the machine, for GPUs that share it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrack {

struct HostMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< what programs can still get without swapping: free, and caches that give way
};

/// MemTotal and MemAvailable of the text of /proc/meminfo; nullopt where one is missing. Pure.
std::optional<HostMemory> parse_meminfo(std::string_view text);

/// The same of `proc_root`/meminfo. Cost: one small file.
std::optional<HostMemory> read_host_memory(const std::string& proc_root);

}  // namespace vramtrack
