#include "engine/headroom.hpp"

#include <algorithm>
#include <utility>

#include "core/units.hpp"
#include "engine/device_state.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostAlerts = 256;
constexpr std::size_t kRunsAsked = 3;
/// If it lasts for less, a program hands its memory to the next one, or a listing is older than the device's reading.
constexpr double kLasts_s = kSecondsPerMinute;

/// The future need of a series, by its own run and by earlier ones.
struct Need {
  double bytes = 0;
  std::uint32_t earlier_runs = 0;
};

/// Earlier runs record the device on which they held most: for a program on several devices they show nothing about
/// each.
Need need_of(const SeriesState& process, const SeriesTable& table, const RunMemory* runs) {
  Need need{static_cast<double>(process.peak_bytes), 0};
  if (runs == nullptr) return need;
  const auto earlier = runs->needed(process, kRunsAsked);
  if (!earlier || earlier->bytes <= need.bytes) return need;
  int devices = 0;
  table.for_process(process_key(process.key),
                    [&](const SeriesState& s) { devices += s.key.metric == Metric::process_used ? 1 : 0; });
  return devices > 1 ? need : Need{earlier->bytes, earlier->runs};
}

/// The same for a device without a list of processes, while a run of it continues.
Need need_of_runs(const SeriesState& device) {
  const std::vector<Run>& runs = device.device->runs.all();
  Need need{static_cast<double>(runs.back().peak_bytes), 0};
  std::uint32_t earlier = 0;
  for (std::size_t i = runs.size() - 1; i-- > 0 && earlier < kRunsAsked;) {
    if (seconds_between(runs[i].begin, *runs[i].end) < DeviceRuns::kReported_s) continue;
    ++earlier;
    if (static_cast<double>(runs[i].peak_bytes) > need.bytes) need = {static_cast<double>(runs[i].peak_bytes), earlier};
  }
  if (need.earlier_runs > 0) need.earlier_runs = earlier;
  return need;
}

std::uint64_t bytes_of(double value) {
  return static_cast<std::uint64_t>(std::max(0.0, value));
}

Headroom headroom_at(double used_bytes, const Need& need, double free_bytes, double tolerance_bytes) {
  Headroom h;
  const double more = std::max(0.0, need.bytes - used_bytes);
  h.peak_bytes = bytes_of(std::max(need.bytes, used_bytes));
  h.more_bytes = bytes_of(more);
  h.earlier_runs = need.earlier_runs;
  const double left = free_bytes - more;
  h.left_bytes = left < 0 && left >= -tolerance_bytes ? 0 : static_cast<std::int64_t>(left);
  return h;
}

}  // namespace

std::optional<Headroom> headroom_of(const SeriesState& s, const SeriesTable& table, const Walls& walls,
                                    const RunMemory* runs, double tolerance_bytes) {
  const SeriesState* const total = s.device->used;
  if (s.ended || s.paused || total == nullptr || total->samples == 0 || !total->limit_bytes) return std::nullopt;
  const auto used = static_cast<double>(total->last_bytes);
  const double free = std::max(0.0, *total->limit_bytes - used);
  if (s.key.metric == Metric::process_used) {
    const auto holds = static_cast<double>(s.last_bytes);
    auto wall = walls.nearest(s);
    if (wall && wall->end_bytes - holds >= free) wall.reset();
    Headroom h = headroom_at(holds, need_of(s, table, runs), wall ? wall->end_bytes - holds : free, tolerance_bytes);
    if (h.fits()) return h;
    std::uint64_t most = 0;
    const auto look = [&](const SeriesState* other) {
      if (other == nullptr || other->key.pid == s.key.pid || other->last_bytes <= most) return;
      most = other->last_bytes;
      h.beside_pid = other->key.pid;
    };
    if (wall)
      for (const SeriesState* const other : wall->sharing) look(other);
    else
      for (const SeriesId id : s.device->living) look(table.find(id));
    return h;
  }
  if (s.key.metric != Metric::device_used) return std::nullopt;
  // An idle device needs nothing.
  if (s.device->living.empty() && !s.device->runs.goes_on()) return std::nullopt;
  if (s.device->living.empty()) return headroom_at(used, need_of_runs(s), free, tolerance_bytes);
  // Not all of them will be at their highest at once, but it is certain that each may be.
  std::optional<Headroom> least;
  for (const SeriesId id : s.device->living) {
    const SeriesState* const process = table.find(id);
    if (process == nullptr || process->key.metric != Metric::process_used) continue;
    std::optional<Headroom> its = headroom_of(*process, table, walls, runs, tolerance_bytes);
    if (!its || (least && its->left_bytes >= least->left_bytes)) continue;
    its->pid = process->key.pid;
    its->peak_bytes = s.last_bytes + its->more_bytes;
    least = its;
  }
  return least;
}

void HeadroomAlerts::take(SeriesId process, const std::optional<Headroom>& headroom, const Scale& scale,
                          const std::string& ends_by, Timestamp time, const Announce& announce) {
  if (!headroom) return;
  const auto it = known_.find(process);
  if (headroom->fits()) {
    if (it == known_.end()) return;
    it->second.since.reset();
    if (!it->second.alerts.empty() && !it->second.alerts.back().cleared)
      clear(it->second.alerts.back(), AlertEnd::released, "what it needs fits again", time, announce);
    return;
  }
  Known& known = it == known_.end() ? known_[process] : it->second;
  if (!known.since) known.since = time;
  if (seconds_between(*known.since, time) < kLasts_s) return;
  if (!known.alerts.empty() && !known.alerts.back().cleared) return;
  Alert alert;
  alert.kind = AlertKind::headroom;
  alert.series = process;
  alert.raised = time;
  alert.severity = Severity::watch;
  alert.finding.detector = "headroom";
  alert.finding.stage = Stage::confirmed;
  alert.finding.state = State::steady;
  alert.finding.onset = known.since;
  alert.finding.because = headroom_words(*headroom, {}, scale) + ends_by;
  known.alerts.push_back(std::move(alert));
  if (known.alerts.size() > kMostAlerts) known.alerts.erase(known.alerts.begin());
  announce(known.alerts.back(), AlertNews::raised);
}

void HeadroomAlerts::end(SeriesId process, Timestamp time, const Announce& announce) {
  const auto it = known_.find(process);
  if (it == known_.end()) return;
  it->second.since.reset();
  if (!it->second.alerts.empty() && !it->second.alerts.back().cleared)
    clear(it->second.alerts.back(), AlertEnd::process_ended, "the process has ended", time, announce);
}

void HeadroomAlerts::clear(Alert& alert, AlertEnd how, std::string reason, Timestamp time, const Announce& announce) {
  alert.cleared = std::max(time, alert.raised);
  alert.ended = how;
  alert.end_reason = std::move(reason);
  announce(alert, AlertNews::cleared);
}

bool HeadroomAlerts::adopt(const Alert& alert) {
  if (alert.cleared) return false;
  Known& known = known_[alert.series];
  if (!known.alerts.empty() && !known.alerts.back().cleared) {
    known.alerts.back().incident = alert.incident;
    return true;
  }
  known.since = alert.finding.onset.value_or(alert.raised);
  known.alerts.push_back(alert);
  return true;
}

const std::vector<Alert>* HeadroomAlerts::alerts_of(SeriesId process) const {
  const auto it = known_.find(process);
  return it == known_.end() || it->second.alerts.empty() ? nullptr : &it->second.alerts;
}

}  // namespace vramtrack
