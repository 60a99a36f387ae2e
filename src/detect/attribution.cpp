#include "detect/attribution.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace vramtrack {
namespace {

/// The suspect accounts for at least this share of the device's growth: with less, it is only one of several.
constexpr double kSuspectShare = 1.0 / 3.0;

/// This many processes of one program that stayed are no coincidence. ...
constexpr std::size_t kLeastPile = 6;
/// ... At most this share of those that came have ended since, ...
constexpr double kMostGone = 0.2;
/// ... and they came over most of the time, as replaced workers do, and not all at once, as a job's do: the middle
/// one between these shares of it, and the last one in the last third.
constexpr double kMiddleFrom = 0.2;
constexpr double kMiddleTo = 0.8;
constexpr double kLastFrom = 2.0 / 3.0;

std::optional<Pile> pile_of(const std::vector<ProcessGrowth>& processes) {
  struct Group {
    std::vector<double> came_at;
    double bytes = 0;
    std::size_t gone = 0;
    std::string_view command;
  };
  std::map<std::string_view, Group> groups;
  for (const ProcessGrowth& p : processes) {
    Group& group = groups[p.program];
    if (p.now_bytes <= 0) {
      ++group.gone;
    } else if (p.at_onset_bytes <= 0 && p.came_at > 0) {
      group.came_at.push_back(p.came_at);
      group.bytes += p.now_bytes;
      group.command = p.command;
    }
  }
  std::optional<Pile> found;
  for (auto& [_, group] : groups) {
    const std::size_t n = group.came_at.size();
    if (n < kLeastPile || static_cast<double>(group.gone) > kMostGone * static_cast<double>(n + group.gone)) continue;
    std::sort(group.came_at.begin(), group.came_at.end());
    const double middle = group.came_at[n / 2];
    if (middle < kMiddleFrom || middle > kMiddleTo || group.came_at.back() < kLastFrom) continue;
    if (!found || group.bytes > found->bytes) found = Pile{std::string(group.command), n, group.bytes};
  }
  return found;
}

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
  out.pile = pile_of(processes);
  if (out.pile && share(out.pile->bytes) < kChurnExplains) out.pile.reset();
  if (grower != nullptr && share(most) >= kSuspectShare) {
    out.suspect = Suspect{grower->pid, grower->pid_start_ticks, grower->command, share(most)};
  } else if (out.churn_share < kChurnExplains) {
    out.suspect = Suspect{0, 0, "no visible process", share(device_growth_bytes - grown - std::max(churn, 0.0))};
  }
  return out;
}

}  // namespace vramtrack
