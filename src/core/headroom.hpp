// Headroom: whether the known need of a program fits beside everything else on its device. A fact, not a detector:
// most programs that run out of memory do not leak.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scale.hpp"

namespace vramtrack {

/// For a process: its own need. For a device: what would be in use if the process whose need leaves least reached it;
/// where no process is listed, the highest use of its run, or of earlier ones.
struct Headroom {
  std::uint64_t peak_bytes = 0;  ///< the most that was held in this run, or in an earlier one of the same program
  std::uint64_t more_bytes = 0;  ///< how much more than now that is
  std::uint32_t earlier_runs =
      0;                        ///< the last runs, if they needed more than this one so far; 0: the peak is of this run
  std::int64_t left_bytes = 0;  ///< what would be free then; if negative, how much is missing
  std::uint32_t pid = 0;        ///< for a device: the process that needs it; 0: unknown
  std::uint32_t beside_pid = 0;  ///< the other process on the device that holds most; 0: none is known

  [[nodiscard]] bool fits() const { return left_bytes >= 0; }
  /// Whether it adds something to the memory in use and its peak, and so is worth a line of text.
  [[nodiscard]] bool is_news() const { return !fits() || earlier_runs > 0; }
  friend bool operator==(const Headroom&, const Headroom&) = default;
};

/// "peaks at 84.1 of 93.6 GiB; the last 3 runs needed up to 11.2 GiB more than now: does not fit beside pid 88, 1.7 GiB
/// are missing". `capacity_bytes`: the capacity of the device.
std::string headroom_words(const Headroom& headroom, std::optional<std::uint64_t> capacity_bytes, const Scale& scale);

}  // namespace vramtrack
