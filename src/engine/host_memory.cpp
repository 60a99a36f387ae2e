#include "engine/host_memory.hpp"

#include <fmt/format.h>

namespace vramtrack {

void HostMemoryOfProcesses::take(const SeriesKey& key, std::uint64_t bytes) {
  HostHolding& holding = known_[process_key(key)].holding;
  if (key.metric == Metric::host_anonymous) holding.anonymous_bytes = bytes;
  if (key.metric == Metric::host_resident) holding.resident_bytes = bytes;
  if (key.metric == Metric::host_pinned) holding.pinned_bytes = bytes;
  if (key.metric == Metric::host_available) holding.available_bytes = bytes;
}

void HostMemoryOfProcesses::take_limit(const Event& event) {
  Known& known = known_[{event.pid, event.pid_start_ticks, event.host}];
  // Limits that were lifted are reported besides the current one.
  if (event.capacity_bytes == 0 && known.limit_name != event.text) return;
  known.limit_bytes = event.capacity_bytes;
  known.limit_name = event.capacity_bytes == 0 ? std::string() : event.text;
}

void HostMemoryOfProcesses::lift_all() {
  for (auto& [process, known] : known_) {
    known.limit_bytes = 0;
    known.limit_name.clear();
  }
}

bool HostMemoryOfProcesses::was_killed(const ProcessKey& process) const {
  const Known* const known = of(process);
  return known != nullptr && known->killed;
}

const HostMemoryOfProcesses::Known* HostMemoryOfProcesses::of(const ProcessKey& process) const {
  const auto known = known_.find(process);
  return known == known_.end() ? nullptr : &known->second;
}

std::optional<double> HostMemoryOfProcesses::end_bytes(const SeriesState& series) const {
  const Known* const known = of(process_key(series.key));
  if (series.key.metric != Metric::host_anonymous || known == nullptr || !known->holding.available_bytes) return {};
  return static_cast<double>(series.last_bytes) + static_cast<double>(*known->holding.available_bytes);
}

Alert& HostMemoryOfProcesses::raise(const SeriesState& process, Timestamp time, const Scale& scale) {
  const Known* const known = of(process_key(process.key));
  Alert alert;
  alert.kind = AlertKind::host_out_of_memory;
  alert.series = process.id;
  alert.raised = time;
  alert.cleared = time;
  alert.ended = AlertEnd::process_ended;
  alert.end_kind = EndKind::host_out_of_memory;
  alert.severity = Severity::critical;
  alert.finding.detector = "kernel";
  alert.finding.stage = Stage::confirmed;
  alert.finding.state = State::steady;
  alert.finding.onset = time;
  alert.finding.because = fmt::format("it held {} of the GPU", scale.bytes(static_cast<double>(process.last_bytes)));
  if (known != nullptr && known->holding.anonymous_bytes > 0)
    alert.finding.because +=
        fmt::format(" and {} of the host", scale.bytes(static_cast<double>(known->holding.anonymous_bytes)));
  if (known != nullptr && known->limit_bytes > 0)
    alert.finding.because += fmt::format(", whose memory is limited to {} by {}",
                                         scale.bytes(static_cast<double>(known->limit_bytes)), known->limit_name);
  alert.end_reason = fmt::format("the host's memory ran out, and the kernel ended pid {}", process.key.pid);
  std::vector<Alert>& alerts = alerts_[process.id];
  alerts.push_back(std::move(alert));
  return alerts.back();
}

}  // namespace vramtrack
