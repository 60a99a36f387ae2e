// Who explains a device's growth: the process that grew, the coming and going of processes, or nobody
// that is visible. Pure.
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
  double at_onset_bytes = 0;     ///< 0 when it did not run yet
  double now_bytes = 0;          ///< 0 when it has ended
  bool growing = false;          ///< its own series rises by its own detector's word (not merely: it started)
  double since_birth_bytes = 0;  ///< its rise since the later of the onset and its own settled start
};

/// From this share of the growth on, the coming and going of processes explains it: more than all else together.
inline constexpr double kChurnExplains = 0.5;

struct Attribution {
  std::optional<Suspect> suspect;  ///< nullopt when no process is visible at all
  bool any_process = false;        ///< some process was there to explain it
  double churn_share = 0;  ///< share of the growth explained by processes that started less those that ended, 0..1
};

/// `device_growth_bytes`: the device's rise from onset to now. A process is the suspect when its own growth
/// explains the largest share and at least a third; when processes are visible and none does, the suspect is
/// pid 0 ("no visible process") with the share nobody explains. O(processes).
Attribution attribute(double device_growth_bytes, const std::vector<ProcessGrowth>& processes);

}  // namespace vramtrack
