#include "engine/stalls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "engine/rest.hpp"
#include "engine/sibling_groups.hpp"

namespace vramtrack {
namespace {

// Activity that does not count as progress: threads that wake up now and then to check something.
constexpr double kIdleCpu = 0.005;          ///< of a core: NCCL's watchdog checks ten times per second
constexpr double kIdleIo_bytes_per_s = 16;  ///< wake-ups through pipes and event descriptors, eight bytes each
constexpr double kIdleChildrenCpu = 0.02;   ///< a child that samples the system for a dashboard
constexpr double kIdleChildrenIo_bytes_per_s = 4096;  ///< it does so by reading /proc
// Thresholds of spinning.
constexpr double kSpinningCpu = 0.5;       ///< of a core
constexpr double kSpinningGpu = 0.95;      ///< share of time in which a kernel ran
constexpr double kUntouchedMemory = 0.05;  ///< share of time in which memory was read or written
constexpr double kCoolPower = 0.5;         ///< of the power limit
/// Looks that are later than this many times their pace leave a gap: the machine slept, or the process was not listed.
constexpr double kGap = 4;
/// Later than this many times their pace, they had to wait for a core themselves. The excess proves nothing
/// about others, which had to wait as well.
constexpr double kLate = 1.5;
constexpr std::size_t kMostAlerts = 64;  ///< per series

double quiet_s(const std::optional<Timestamp>& last, Timestamp begin, Timestamp now) {
  return seconds_between(last ? std::max(*last, begin) : begin, now);
}

double lasts_s(const std::optional<Timestamp>& since, Timestamp now) {
  return since ? seconds_between(*since, now) : 0;
}

void hold(std::optional<Timestamp>& since, bool holds, Timestamp now) {
  if (!holds)
    since.reset();
  else if (!since)
    since = now;
}

}  // namespace

bool Stalls::before(const ProcessKey& a, const ProcessKey& b) {
  return std::tie(a.host, a.pid, a.start_ticks) < std::tie(b.host, b.pid, b.start_ticks);
}

void Stalls::memory_changed(const ProcessKey& process, Timestamp time) {
  if (config_.stall.minutes <= 0) return;
  if (const auto known = processes_.find(process); known != processes_.end()) known->second.memory = time;
}

void Stalls::take(const Batch& batch, const Announce& announce) {
  for (const ProgressReading& reading : batch.progress) look(reading);
  if (processes_.empty()) return;
  if (!batch.readings.empty() || !batch.loads.empty() || !batch.progress.empty()) {
    Timestamp now = Timestamp::min();
    for (const DeviceReading& r : batch.readings) now = std::max(now, r.time);
    for (const ProcessReading& r : batch.loads) now = std::max(now, r.time);
    for (const ProgressReading& r : batch.progress) now = std::max(now, r.time);
    for (auto& [key, process] : processes_) watch_gpu(key, process, now);
  }
  if (batch.progress.empty()) return;
  const Timestamp now = batch.progress.back().time;
  for (auto& [key, process] : processes_) place(key, process);
  for (auto it = processes_.begin(); it != processes_.end();) {
    Watched& process = it->second;
    if (process.last.time == now) {
      conclude(process, announce);
    } else if (process.last.pid != 0 && seconds_between(process.last.time, now) > kGap * pace_s()) {
      if (process.alert) clear(process, now, AlertEnd::released, "it released its memory", announce);
      it = processes_.erase(it);
      continue;
    }
    ++it;
  }
}

void Stalls::look(const ProgressReading& reading) {
  const ProcessKey key{reading.pid, reading.pid_start_ticks, reading.host};
  Watched& process = processes_[key];
  const double passed_s = seconds_between(process.last.time, reading.time);
  // A process held by a policy gets nothing done because of that. The half hour begins when the hold is lifted.
  const bool is_held = reading.progress.held_by_policy && !process.alert;
  if (process.last.pid == 0 || passed_s > kGap * pace_s() || is_held) {
    begin_anew(process, reading);
  } else if (passed_s > 0) {
    if (passed_s > kLate * pace_s()) {
      const Duration lost = from_seconds(passed_s - pace_s());
      process.begin += lost;
      for (auto* since : {&process.cpu, &process.io, &process.children, &process.memory, &process.gpu, &process.parent,
                          &process.gpu_unknown, &process.io_unknown, &process.spins_cpu, &process.spins_gpu,
                          &process.in_state, &process.waiting})
        if (*since) **since += lost;
    }
    compare(process, reading);
  }
  process.last = reading;
}

void Stalls::begin_anew(Watched& process, const ProgressReading& reading) const {
  const std::optional<SeriesId> alert = process.alert;
  process = Watched{};
  process.alert = alert;
  process.begin = reading.time;
  process.in_state = reading.time;
  const ProcessKey key{reading.pid, reading.pid_start_ticks, reading.host};
  if (const ProcessInfo* info = catalog_.process(key)) process.group = sibling_group(*info);
  if (process.group.empty() && reading.progress.parent_pid > 1)
    process.group = fmt::format("children of {}", reading.progress.parent_pid);
}

void Stalls::compare(Watched& process, const ProgressReading& reading) const {
  const ProcessProgress& was = process.last.progress;
  const ProcessProgress& is = reading.progress;
  const Timestamp now = reading.time;
  const double passed_s = seconds_between(process.last.time, now);
  const auto rate = [&](double before, double after) { return (after - before) / passed_s; };
  process.cpu_ratio = std::max(0.0, rate(was.cpu_s, is.cpu_s));
  // A process that has work for a core would continue if it got one, and is not stalled however little it does.
  if (process.cpu_ratio > kIdleCpu || is.state == 'R') process.cpu = now;
  hold(process.spins_cpu, process.cpu_ratio >= kSpinningCpu, now);
  if (!was.io_bytes || !is.io_bytes)
    process.io_unknown = now;
  else if (std::abs(rate(static_cast<double>(*was.io_bytes), static_cast<double>(*is.io_bytes))) > kIdleIo_bytes_per_s)
    process.io = now;
  const bool children_moved =
      was.children != is.children || std::abs(rate(was.children_cpu_s, is.children_cpu_s)) > kIdleChildrenCpu ||
      (was.children_io_bytes && is.children_io_bytes &&
       std::abs(rate(static_cast<double>(*was.children_io_bytes), static_cast<double>(*is.children_io_bytes))) >
           kIdleChildrenIo_bytes_per_s);
  if (children_moved) process.children = now;
  if (was.parent_cpu_s && is.parent_cpu_s && was.parent_pid == is.parent_pid &&
      rate(*was.parent_cpu_s, *is.parent_cpu_s) > kIdleChildrenCpu)
    process.parent = now;
  if (was.state != is.state) process.in_state = now;
  // The time in which something else explained its rest proves nothing.
  if (const Rest before = rest_of(was); before != Rest::none && before != rest_of(is)) process.begin = now;
  hold(process.waiting, is.listening && is.listening->waiting > 0, now);
}

/// A process is judged by its own share, if the driver reports it; else by its device's, if no other process uses that.
Stalls::Gpu Stalls::gpu_of(const SeriesState& s) const {
  const SeriesState* const used = s.device->used;
  if (s.paused || used == nullptr || used->paused) return Gpu::unknown;
  const auto& total = s.device->utilisation_ratio;
  bool alone = true;
  bool driver_reports = s.load.gpu_ratio.has_value();
  for (const auto& [id, other] : s.device->series) {
    if (other == &s || other->key.metric != Metric::process_used || other->ended || other->last_bytes == 0) continue;
    alone = false;
    driver_reports = driver_reports || other->load.gpu_ratio.has_value();
  }
  Gpu gpu = Gpu::unknown;
  if (s.load.gpu_ratio)
    gpu = *s.load.gpu_ratio > 0 ? Gpu::busy : Gpu::rests;
  else if (total && *total > 0 && alone)
    gpu = Gpu::busy;
  else if (total && (*total <= 0 || driver_reports))
    gpu = Gpu::rests;  // if the driver reports it, a process that runs nothing is not listed
  const auto& memory = s.device->gauges.memory_utilisation_ratio;
  if (gpu == Gpu::busy && total && *total >= kSpinningGpu && memory && *memory <= kUntouchedMemory) return Gpu::spins;
  return gpu;
}

void Stalls::watch_gpu(const ProcessKey& key, Watched& process, Timestamp time) const {
  Gpu most = Gpu::rests;
  bool unknown = false;
  bool spins = false;
  bool works = false;
  bool cool = true;
  table_.for_process(key, [&](const SeriesState& s) {
    if (s.key.metric != Metric::process_used || s.ended || s.last_bytes == 0) return;
    const Gpu gpu = gpu_of(s);
    most = std::max(most, gpu);
    unknown = unknown || gpu == Gpu::unknown;
    spins = spins || gpu == Gpu::spins;
    works = works || gpu == Gpu::busy;
    if (gpu != Gpu::spins) return;
    const DeviceGauges& g = s.device->gauges;
    cool = cool && g.power_watts && g.power_limit_watts && *g.power_watts <= kCoolPower * *g.power_limit_watts;
  });
  if (most == Gpu::busy || most == Gpu::spins) process.gpu = time;
  if (unknown) process.gpu_unknown = time;
  const bool began = !process.spins_gpu;
  hold(process.spins_gpu, spins && !works, time);
  process.cool = process.spins_gpu && cool && (began || process.cool);
}

/// The device on which it holds most, and how much it holds in all.
void Stalls::place(const ProcessKey& key, Watched& process) const {
  process.held_bytes = 0;
  process.device = nullptr;
  std::uint64_t most = 0;
  table_.for_process(key, [&](const SeriesState& s) {
    if (s.key.metric != Metric::process_used || s.ended) return;
    process.held_bytes += s.last_bytes;
    process.ignored = s.ignored;
    if (process.device != nullptr && s.last_bytes <= most) return;
    most = s.last_bytes;
    process.device = s.device;
    process.series = s.id;
  });
}

/// Whether it worked recently, judging by whatever is known about it.
bool Stalls::at_work(const Watched& process) const {
  const Timestamp now = process.last.time;
  double least_s = window_s();
  for (const auto& moved : {process.cpu, process.io, process.children, process.gpu})
    least_s = std::min(least_s, quiet_s(moved, process.begin - from_seconds(window_s()), now));
  return least_s <= std::max(window_s() / 4, pace_s());
}

StallFacts Stalls::facts_of(const Watched& process) const {
  const Timestamp now = process.last.time;
  StallFacts f;
  f.now = process.last.progress;
  f.time = now;
  f.held_bytes = process.held_bytes;
  const ProcessKey key{process.last.pid, process.last.pid_start_ticks, process.last.host};
  if (const ProcessInfo* info = catalog_.process(key)) f.slurm_job = info->slurm_job;
  f.cpu_quiet_s = quiet_s(process.cpu, process.begin, now);
  f.io_quiet_s = quiet_s(process.io, process.begin, now);
  f.children_quiet_s = quiet_s(process.children, process.begin, now);
  f.memory_quiet_s = quiet_s(process.memory, process.begin, now);
  f.gpu_quiet_s = quiet_s(process.gpu, process.begin, now);
  f.parent_quiet_s = quiet_s(process.parent, process.begin, now);
  f.cpu_ratio = process.cpu_ratio;
  f.knows_io = !process.io_unknown || quiet_s(process.io_unknown, process.begin, now) >= window_s();
  f.knows_gpu = !process.gpu_unknown || quiet_s(process.gpu_unknown, process.begin, now) >= window_s();
  f.spins_cpu_s = lasts_s(process.spins_cpu, now);
  f.spins_gpu_s = lasts_s(process.spins_gpu, now);
  f.cool = process.cool;
  f.in_state_s = lasts_s(process.in_state, now);
  f.requests_wait_s = lasts_s(process.waiting, now);
  if (process.group.empty()) return f;
  for (const auto& [other_key, other] : processes_) {
    if (&other == &process || other.group != process.group || other_key.host != key.host) continue;
    if (other.device == process.device || other.last.time != now) continue;
    ++f.peers;
    if (lasts_s(other.spins_gpu, now) >= window_s()) ++f.peers_spin;
    if (at_work(other)) ++f.peers_work;
  }
  return f;
}

void Stalls::conclude(Watched& process, const Announce& announce) {
  if (process.device == nullptr) return;
  process.stall = judge_stall(facts_of(process), window_s());
  const bool wants = process.stall && process.stall->judgement == StallJudgement::stalled && !process.ignored &&
                     process.stall->confidence >= kStallAlertConfidence;
  if (wants && !process.alert) return raise(process, announce);
  if (wants || !process.alert) return;
  const Timestamp now = process.last.time;
  // An alert from an earlier engine stands until something moves.
  const bool moved = process.cpu || process.io || process.children || process.memory || process.gpu;
  if (!process.stall && moved)
    clear(process, now, AlertEnd::resumed, "it makes progress again", announce);
  else if (process.stall)
    clear(process, now, AlertEnd::withdrawn, fmt::format("{}", fmt::join(process.stall->evidence, "; ")), announce);
}

void Stalls::raise(Watched& process, const Announce& announce) {
  const Stall& stall = *process.stall;
  Alert alert;
  alert.kind = AlertKind::stall;
  alert.series = process.series;
  alert.raised = process.last.time;
  // A series and the time of the raise identify an alert.
  if (const SeriesState* s = table_.find(process.series); s != nullptr && !s->alerts.empty())
    if (s->alerts.back().raised == alert.raised) alert.raised += Duration{1};
  alert.severity = Severity::watch;
  Finding& finding = alert.finding;
  finding.detector = "stalls";
  finding.stage = Stage::confirmed;
  finding.state = State::steady;
  finding.confidence = stall.confidence;
  finding.onset = stall.since;
  finding.because = fmt::format("{}", fmt::join(stall.evidence, "; "));
  std::vector<Alert>& alerts = alerts_[process.series];
  alerts.push_back(std::move(alert));
  if (alerts.size() > kMostAlerts) alerts.erase(alerts.begin());
  process.alert = process.series;
  announce(alerts.back(), AlertNews::raised);
}

void Stalls::clear(Watched& process, Timestamp time, AlertEnd end, std::string reason, const Announce& announce) {
  const auto alerts = alerts_.find(*process.alert);
  process.alert.reset();
  if (alerts == alerts_.end() || alerts->second.empty() || alerts->second.back().cleared) return;
  Alert& alert = alerts->second.back();
  alert.cleared = std::max(time, alert.raised);
  alert.ended = end;
  alert.end_reason = std::move(reason);
  announce(alert, AlertNews::cleared);
}

void Stalls::end(const ProcessKey& key, Timestamp time, const Announce& announce) {
  const auto known = processes_.find(key);
  if (known == processes_.end()) return;
  if (known->second.alert) clear(known->second, time, AlertEnd::process_ended, "the process has ended", announce);
  processes_.erase(known);
}

bool Stalls::adopt(const Alert& alert) {
  if (alert.kind != AlertKind::stall || alert.cleared || !catalog_.holds(alert.series)) return false;
  Watched& process = processes_[process_key(catalog_.key(alert.series))];
  std::vector<Alert>& alerts = alerts_[process.alert.value_or(alert.series)];
  if (process.alert)
    alerts.back().incident = alert.incident;
  else
    alerts.push_back(alert);
  if (!process.alert) process.alert = alert.series;
  return true;
}

const Stall* Stalls::of(const ProcessKey& process) const {
  const auto known = processes_.find(process);
  return known == processes_.end() || !known->second.stall ? nullptr : &*known->second.stall;
}

}  // namespace vramtrack
