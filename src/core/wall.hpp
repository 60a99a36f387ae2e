// MemoryWall: a limit on a process's memory, set by others, that it reaches before its device is full; and what
// is known about a process besides the memory of its device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.hpp"

namespace vramtrack {

struct MemoryWall {
  std::uint64_t bytes = 0;
  std::uint64_t used_bytes = 0;   ///< the part in use, by all processes that share it
  std::uint32_t processes = 0;    ///< those that share it on the device, including this one; 0: unknown
  double growth_bytes_per_s = 0;  ///< the growth of all of them together
  std::string name;               ///< who set it, and where: "dmem.max of /kubepods.slice/pod1"; untrusted
  friend bool operator==(const MemoryWall&, const MemoryWall&) = default;
};

/// The host memory that a process holds, as of the last look.
struct HostHolding {
  std::uint64_t anonymous_bytes = 0;  ///< memory backed by no file: anonymous, shared, swapped out
  std::optional<std::uint64_t> resident_bytes;
  std::optional<std::uint64_t> pinned_bytes;
  std::optional<std::uint64_t> available_bytes;  ///< how much it can still grow
  friend bool operator==(const HostHolding&, const HostHolding&) = default;
};

/// A process whose device memory ran out, which caught that, and which still holds what it had.
struct StillHolds {
  Timestamp ran_out;
  std::optional<std::uint64_t> unused_bytes;  ///< the part that its allocator does not use, if that is known
  friend bool operator==(const StillHolds&, const StillHolds&) = default;
};

/// How memory grows from one mark of a process to the next of the same name.
struct MarkGrowth {
  std::string name;        ///< "step"; untrusted
  std::uint64_t last = 0;  ///< its number, or how many have come so far
  double bytes_per_mark = 0;
  friend bool operator==(const MarkGrowth&, const MarkGrowth&) = default;
};

}  // namespace vramtrack
