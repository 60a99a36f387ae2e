// What explains a device's growth: the process that grew, the turnover of processes, or no visible process.
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
  std::string program;           ///< the program that it shares with its other runs; see program_identity()
  double came_at = 0;  ///< when it began, as a share of the time from the onset to now; 0: at the onset or before
};

/// From this share of the growth on, the turnover of processes explains it: more than everything else together.
inline constexpr double kChurnExplains = 0.5;

/// Processes of one program that started one after another and did not end: workers that are replaced but stay,
/// contexts that nobody closes. None of them grows, so only their number shows it.
struct Pile {
  std::string command;  ///< the command of one of them
  std::size_t processes = 0;
  double bytes = 0;  ///< the memory that they hold
};

struct Attribution {
  std::optional<Suspect> suspect;  ///< nullopt when no process is visible at all
  bool any_process = false;        ///< whether any process was there to explain it
  double churn_share = 0;          ///< share of growth explained by processes that started minus those that ended, 0..1
  std::optional<Pile> pile;        ///< if it explains at least half of the growth
};

/// `device_growth_bytes`: the device's rise from onset to now. A process is the suspect if its own growth explains the
/// largest share and at least a third; if processes are visible but none qualifies, the suspect is pid 0 ("no visible
/// process") with the share that no process explains. O(processes).
Attribution attribute(double device_growth_bytes, const std::vector<ProcessGrowth>& processes);

}  // namespace vramtrack
