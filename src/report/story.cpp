#include "report/story.hpp"

namespace vramtrack {
namespace {

bool stood_together(const Alert& a, const Alert& b) {
  return (!b.cleared || a.raised <= *b.cleared) && (!a.cleared || b.raised <= *a.cleared);
}

bool same_leak(const AlertOf& device, const AlertOf& process) {
  return device.key.metric == Metric::device_used && device_key(device.key) == device_key(process.key) &&
         device.alert.finding.leak && process.alert.finding.leak && stood_together(device.alert, process.alert) &&
         (device.alert.ended == AlertEnd::standing || process.alert.ended != AlertEnd::standing);
}

}  // namespace

std::vector<std::size_t> told_with(const std::vector<AlertOf>& alerts) {
  std::vector<std::size_t> out(alerts.size());
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    out[i] = i;
    if (alerts[i].key.pid == 0) continue;
    for (std::size_t k = 0; k < alerts.size(); ++k)
      if (same_leak(alerts[k], alerts[i])) out[i] = k;
  }
  return out;
}

}  // namespace vramtrack
