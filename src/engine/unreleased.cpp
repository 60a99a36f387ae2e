#include "engine/unreleased.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {
namespace {

constexpr std::size_t kMostAlerts = 256;

}  // namespace

void UnreleasedMemory::take(const SeriesState& rest, Timestamp time, const Announce& announce) {
  std::vector<Remainder::Unreleased> now = rest.device->remainder.unreleased();
  const double least_bytes = config_.stall.min_memory_bytes();
  std::erase_if(now, [&](const Remainder::Unreleased& memory) { return memory.held_bytes < least_bytes; });
  if (now.empty() && standing_.empty()) return;
  const DeviceKey device = device_key(rest.key);
  const auto is_gone = [&](Standing& one) {
    if (!(device_key(catalog_.key(one.process)) == device)) return false;
    const bool is_seen = std::any_of(now.begin(), now.end(), [&](const auto& m) { return m.process == one.process; });
    if (one.is_adopted && !one.rest_bytes) one.rest_bytes = rest.last_bytes;
    if (is_seen || (one.is_adopted && 2 * rest.last_bytes >= *one.rest_bytes)) return false;
    clear(alerts_[one.process].back(), time, announce);
    return true;
  };
  std::erase_if(standing_, is_gone);
  for (const Remainder::Unreleased& memory : now)
    if (catalog_.holds(memory.process) && !stands(memory.process)) raise(memory, time, announce);
  bytes_[rest.id] = 0;
  for (const Remainder::Unreleased& memory : now) bytes_[rest.id] += memory.bytes;
}

bool UnreleasedMemory::stands(SeriesId process) const {
  return std::any_of(standing_.begin(), standing_.end(), [&](const Standing& one) { return one.process == process; });
}

void UnreleasedMemory::raise(const Remainder::Unreleased& memory, Timestamp time, const Announce& announce) {
  Alert alert;
  alert.kind = AlertKind::unreleased;
  alert.series = memory.process;
  alert.raised = time;
  alert.severity = Severity::watch;
  alert.finding.detector = "release";
  alert.finding.stage = Stage::confirmed;
  alert.finding.state = State::steady;
  alert.finding.onset = memory.ended;
  alert.finding.because = because(memory, time);
  std::vector<Alert>& alerts = alerts_[memory.process];
  alerts.push_back(std::move(alert));
  if (alerts.size() > kMostAlerts) alerts.erase(alerts.begin());
  standing_.push_back({memory.process, false, {}});
  announce(alerts.back(), AlertNews::raised);
}

void UnreleasedMemory::clear(Alert& alert, Timestamp time, const Announce& announce) const {
  alert.cleared = std::max(time, alert.raised);
  alert.ended = AlertEnd::released;
  alert.end_reason = alert.finding.onset
                         ? fmt::format("the memory was freed {} after the process had ended",
                                       catalog_.scale.duration(seconds_between(*alert.finding.onset, time)))
                         : "the memory was freed";
  announce(alert, AlertNews::cleared);
}

std::string UnreleasedMemory::because(const Remainder::Unreleased& memory, Timestamp time) const {
  return fmt::format(
      "it held {} and ended {} ago{}; {} are still in use, and no process that the driver lists holds them",
      catalog_.scale.bytes(memory.held_bytes), catalog_.scale.duration(seconds_between(memory.ended, time)),
      memory.is_one_of_several ? ", as others did at about that time" : "", catalog_.scale.bytes(memory.bytes));
}

void UnreleasedMemory::forget(SeriesId series) {
  alerts_.erase(series);
  bytes_.erase(series);
  std::erase_if(standing_, [&](const Standing& one) { return one.process == series; });
}

bool UnreleasedMemory::adopt(const Alert& alert) {
  if (alert.cleared || !catalog_.holds(alert.series)) return false;
  if (stands(alert.series)) {
    alerts_[alert.series].back().incident = alert.incident;
    return true;
  }
  alerts_[alert.series].push_back(alert);
  standing_.push_back({alert.series, true, {}});
  return true;
}

double UnreleasedMemory::bytes_of(SeriesId rest) const {
  const auto known = bytes_.find(rest);
  return known == bytes_.end() ? 0 : known->second;
}

}  // namespace vramtrack
