// MemoryWall: a limit on a process's memory that others have set, where that ends it before its device does.
#pragma once

#include <cstdint>
#include <string>

namespace vramtrack {

struct MemoryWall {
  std::uint64_t bytes = 0;
  std::uint64_t used_bytes = 0;  ///< of that, by all processes that share it
  std::uint32_t processes = 0;   ///< that share it on the device, this one among them
  std::string name;              ///< who set it, and where: "dmem.max of /kubepods.slice/pod1"; untrusted
  friend bool operator==(const MemoryWall&, const MemoryWall&) = default;
};

}  // namespace vramtrack
