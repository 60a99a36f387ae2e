#include "detect/attribution.hpp"

#include <algorithm>

namespace vramtrack {
namespace {

/// The suspect has grown by at least this share of the device's growth: with less, it is only one of several.
constexpr double kSuspectShare = 1.0 / 3.0;

}  // namespace

Attribution attribute(double device_growth_bytes, const std::vector<ProcessGrowth>& processes) {
  Attribution out;
  out.any_process = !processes.empty();
  if (processes.empty() || !(device_growth_bytes > 0)) return out;
  const ProcessGrowth* grower = nullptr;
  double most = 0;
  double grown = 0;
  double churn = 0;
  for (const ProcessGrowth& p : processes) {
    const double change = p.now_bytes - p.at_onset_bytes;
    const bool started = p.at_onset_bytes <= 0 && p.now_bytes > 0;
    const bool ended = p.now_bytes <= 0;
    double growth = 0;
    if (ended) {
      churn += change;
    } else if (started) {
      growth = p.growing ? std::clamp(p.since_birth_bytes, 0.0, change) : 0;
      churn += change - growth;
    } else {
      growth = change;
    }
    grown += growth;
    if (growth > most) {
      most = growth;
      grower = &p;
    }
  }
  const auto share = [&](double bytes) { return std::clamp(bytes / device_growth_bytes, 0.0, 1.0); };
  out.churn_share = share(churn);
  if (grower != nullptr && share(most) >= kSuspectShare) {
    out.suspect = Suspect{grower->pid, grower->pid_start_ticks, grower->command, share(most)};
  } else if (out.churn_share < kChurnExplains) {
    out.suspect = Suspect{0, 0, "no visible process", share(device_growth_bytes - grown - std::max(churn, 0.0))};
  }
  return out;
}

}  // namespace vramtrack
