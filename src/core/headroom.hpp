// Headroom: whether what a program is known to need fits beside what else is on its device. A fact, not a detector:
// most programs that run out of memory do not leak.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scale.hpp"

namespace vramtrack {

/// Of a process: its own need. Of a device: what would be in use if the process came to its need that leaves least;
/// where no process is listed, the highest of its run, or of earlier ones.
struct Headroom {
  std::uint64_t peak_bytes = 0;  ///< the most that was held in this run, or in an earlier one of the same program
  std::uint64_t more_bytes = 0;  ///< so much more than now
  std::uint32_t earlier_runs =
      0;                        ///< the last runs, if they needed more than this one so far; 0: the peak is of this run
  std::int64_t left_bytes = 0;  ///< what would be free then; below 0: so much is missing
  std::uint32_t pid = 0;        ///< of a device: the process that needs it; 0: not known
  std::uint32_t beside_pid = 0;  ///< the other process of the device that holds most; 0: none is known

  [[nodiscard]] bool fits() const { return left_bytes >= 0; }
  /// It says more than what is in use and its peak: worth a line of text.
  [[nodiscard]] bool is_news() const { return !fits() || earlier_runs > 0; }
  friend bool operator==(const Headroom&, const Headroom&) = default;
};

/// "peaks at 84.1 of 93.6 GiB; the last 3 runs needed up to 11.2 GiB more than now: does not fit beside pid 88, 1.7 GiB
/// are missing". `capacity_bytes`: of a device.
std::string headroom_words(const Headroom& headroom, std::optional<std::uint64_t> capacity_bytes, const Scale& scale);

}  // namespace vramtrack
