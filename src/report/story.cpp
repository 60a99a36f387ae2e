#include "report/story.hpp"

#include <unordered_map>

namespace vramtrack {
namespace {

bool stood_together(const Alert& a, const Alert& b) {
  return (!b.cleared || a.raised <= *b.cleared) && (!a.cleared || b.raised <= *a.cleared);
}

bool same_leak(const Alert& device, const Alert& process) {
  return device.finding.leak && process.finding.leak && stood_together(device, process) &&
         (device.ended == AlertEnd::standing || process.ended != AlertEnd::standing);
}

}  // namespace

std::vector<std::size_t> told_with(const std::vector<AlertOf>& alerts) {
  std::unordered_map<DeviceKey, std::vector<std::size_t>, KeyHash> of_device;
  for (std::size_t i = 0; i < alerts.size(); ++i)
    if (alerts[i].key.metric == Metric::device_used) of_device[device_key(alerts[i].key)].push_back(i);
  std::vector<std::size_t> out(alerts.size());
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    out[i] = i;
    const auto device = of_device.find(device_key(alerts[i].key));
    if (alerts[i].key.pid == 0 || device == of_device.end()) continue;
    for (const std::size_t k : device->second)
      if (same_leak(alerts[k].alert, alerts[i].alert)) out[i] = k;
  }
  return out;
}

}  // namespace vramtrack
