// Who explains a device's growth: the process that grew, the coming and going of processes, or no visible process.
// Pure.
#pragma once

#include <optional>
#include <vector>

#include "core/verdict.hpp"

namespace vramtrack {

/// What one process did between the onset of the device's growth and now.
struct ProcessGrowth {
  std::uint32_t pid = 0;
  std::uint64_t pid_start_ticks = 0;
  std::string command;
  double at_onset_bytes = 0;     ///< 0 if it was not running yet
  double now_bytes = 0;          ///< 0 if it has ended
  bool growing = false;          ///< its own detector finds that its series rises (not merely that the process started)
  double since_birth_bytes = 0;  ///< its rise since the later of the onset and its own settled start
};

/// From this share of the growth on, the coming and going of processes explains it: more than everything else together.
inline constexpr double kChurnExplains = 0.5;

struct Attribution {
  std::optional<Suspect> suspect;  ///< nullopt when no process is visible at all
  bool any_process = false;        ///< some process was there to explain it
  double churn_share = 0;          ///< share of growth explained by processes that started minus those that ended, 0..1
};

/// `device_growth_bytes`: the device's rise from onset to now. A process is the suspect if its own growth explains the
/// largest share and at least a third; if processes are visible but none qualifies, the suspect is pid 0 ("no visible
/// process") with the share that no process explains. O(processes).
Attribution attribute(double device_growth_bytes, const std::vector<ProcessGrowth>& processes);

}  // namespace vramtrack
