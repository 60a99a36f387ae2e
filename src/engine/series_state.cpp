#include "engine/series_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/framework.hpp"
#include "core/program.hpp"
#include "core/program_kind.hpp"
#include "engine/device_state.hpp"

namespace vramtrack {
namespace {

constexpr double kLongestRelease_s = 60;
constexpr double kReleaseSeenPeriods = 2;
constexpr double kNewPeak = 1.01;

}  // namespace

Severity severity_of(const Finding& finding, const SeverityConfig& config) {
  if (!finding.leak) return Severity::ok;
  if (!finding.oom_in_s) return Severity::watch;
  if (finding.oom_in_s->mid <= config.critical_hours * 3600) return Severity::critical;
  if (finding.oom_in_s->mid <= config.warning_hours * 3600) return Severity::warning;
  return Severity::watch;
}

IgnorePatterns::IgnorePatterns(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns)
    if (auto compiled = Regex::compile(pattern)) patterns_.push_back(std::move(*compiled));
}

bool IgnorePatterns::match(const ProcessInfo& process) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Regex& pattern) {
    return pattern.found_in(process.command) || pattern.found_in(process.name);
  });
}

SeriesState::SeriesState(SeriesId series, const Catalog& catalog, const Config& config, const IgnorePatterns& ignore)
    : id(series), key(catalog.key(series)) {
  make_detectors(config.detection, catalog.scale);
  if (is_of_allocator(key.metric)) floors = std::make_unique<FloorCurve>();
  if (key.pid != 0)
    if (const ProcessInfo* process = catalog.process(process_key(key))) ignored = ignore.match(*process);
}

void SeriesState::make_detectors(const DetectionConfig& config, const Scale& figures) {
  const DetectorInfo* deciding = find_detector(config.detector);
  if (deciding != nullptr) detector = deciding->make(config, figures);
  dissenters.clear();
  for (const DetectorInfo* info : vramtrack::dissenters())
    if (info != deciding) dissenters.push_back(info->make(config, figures));
}

void SeriesState::judge_anew(const DetectionConfig& config, const Scale& figures) {
  make_detectors(config, figures);
  standstill = {};
  rise_number = 0;
  if (!detector) return;
  detector->set_experience(experience_);
  detector->set_facts(facts.get());
  detector->set_limit(limit_bytes);
  for (auto& d : dissenters) d->set_limit(limit_bytes);
  detector->observe(last_time, static_cast<double>(last_bytes));
  for (auto& d : dissenters) d->observe(last_time, static_cast<double>(last_bytes));
}

void SeriesState::set_experience(const Experience* experience) {
  experience_ = experience;
  if (detector) detector->set_experience(experience);
}

Facts& SeriesState::ensure_facts() {
  if (facts) return *facts;
  facts = std::make_unique<Facts>();
  if (detector) detector->set_facts(facts.get());
  return *facts;
}

bool SeriesState::observe(const Sample& sample) {
  if (samples > 0) {
    if (sample.time < last_time) return false;
    if (sample.time > last_time) period.observe(seconds_between(last_time, sample.time));
  } else {
    first_time = sample.time;
  }
  const bool falls = samples > 0 && sample.bytes < last_bytes && seconds_between(top_time, sample.time) <= release_s();
  if (!falls) {
    top_time = sample.time;
    top_bytes = sample.bytes;
  }
  ++samples;
  prior_time = last_time;
  last_time = sample.time;
  last_bytes = sample.bytes;
  if (static_cast<double>(sample.bytes) > kNewPeak * static_cast<double>(peak_bytes)) peak_time = sample.time;
  peak_bytes = std::max(peak_bytes, sample.bytes);
  if (is_total()) {
    device->floor_since_end = std::min(device->floor_since_end, sample.bytes);
    ++device->samples_since_end;
  }
  if (ended || !detector) return false;
  const auto bytes = static_cast<double>(sample.bytes);
  history.observe(sample.time, bytes);
  if (floors) floors->observe(sample.time, bytes);
  detector->observe(sample.time, bytes);
  for (auto& d : dissenters) d->observe(sample.time, bytes);
  return true;
}

bool SeriesState::is_in_device() const {
  return !is_of_host(key.metric) || (key.metric == Metric::host_anonymous && device->remainder.counts_also());
}

void SeriesState::refresh_limit(std::optional<std::uint64_t> holds, std::optional<double> wall_bytes) {
  std::optional<double> limit = ceiling_bytes;
  if (device->capacity_bytes && is_in_device()) {
    const SeriesState* const reserved = device->reserved;
    const SeriesState* const used = device->used;
    double end = *device->capacity_bytes - (reserved != nullptr ? static_cast<double>(reserved->last_bytes) : 0.0);
    if (device->host_end_bytes) end = std::min(end, *device->host_end_bytes);
    const bool is_part = key.pid != 0 || key.metric == Metric::device_unattributed || !is_of_device(key.metric);
    if (is_part && used != nullptr && used->samples > 0)
      end =
          static_cast<double>(holds.value_or(last_bytes)) + std::max(0.0, end - static_cast<double>(used->last_bytes));
    limit = std::min(end, ceiling_bytes.value_or(end));
  }
  if (wall_bytes) limit = std::min(*wall_bytes, limit.value_or(*wall_bytes));
  if (limit_bytes == limit) return;
  limit_bytes = limit;
  if (detector) detector->set_limit(limit_bytes);
  for (auto& d : dissenters) d->set_limit(limit_bytes);
}

void SeriesState::end(End how) {
  last_found.end = std::move(how);
  last_found.finding.oom_in_s.reset();  // nothing is predicted for a series that is over
  detector.reset();
  dissenters.clear();
  ended = true;
}

double SeriesState::release_s() const {
  return kLongestRelease_s + kReleaseSeenPeriods * period.median_s();
}

bool SeriesState::follows_total() const {
  if (!explains) return false;
  const SeriesState* const total = device->used;
  return total != nullptr && total->detector && total->detector->suspecting();
}

const SeriesState& SeriesState::line() const {
  return follows_total() ? *device->used : *this;
}

const SeriesState& SeriesState::last_line() const {
  const SeriesState* const total = device->used;
  return explains && total != nullptr && total->detector ? *total : *this;
}

bool SeriesState::alerting() const {
  return detector->alerting() || (follows_total() && line().detector->alerting());
}

bool SeriesState::suspecting() const {
  return detector->suspecting() || follows_total();
}

Finding SeriesState::finding() const {
  Finding own = detector->finding();
  if (!follows_total()) return own;
  Finding of_total = line().detector->finding();
  if (of_total.stage <= own.stage) return own;
  of_total.because = fmt::format("shown by the device's memory, {} of whose growth it explains: {}",
                                 format_percent(std::min(1.0, *explains)), of_total.because);
  return of_total;
}

bool SeriesState::is_total() const {
  return this == device->total();
}

bool SeriesState::is(const std::optional<Suspect>& suspect) const {
  return suspect && suspect->pid != 0 && key.metric == Metric::process_used && key.pid == suspect->pid &&
         key.pid_start_ticks == suspect->pid_start_ticks;
}

double SeriesState::rise_since(Timestamp onset) const {
  const auto then = history.at(onset);
  if (!then || history.spans().empty()) return 0;
  return static_cast<double>(history.spans().back().mean_bytes) - static_cast<double>(then->min_bytes);
}

double SeriesState::rise_between(Timestamp from, Timestamp to) const {
  const auto then = history.at(from);
  const auto now = history.at(to);
  return then && now ? static_cast<double>(now->mean_bytes) - static_cast<double>(then->mean_bytes) : 0;
}

std::optional<double> SeriesState::level_of(const Finding& finding) const {
  if (!finding.onset) return std::nullopt;
  double sum = 0;
  double samples_since = 0;
  for (const History::Span& span : history.spans()) {
    const Timestamp start = history.start_of(span);
    if (start + history.width() <= *finding.onset) continue;
    // The last span may be young: its mean does not belong to its middle.
    const Timestamp end = std::min(start + history.width(), std::max(start, last_time));
    const Timestamp middle = start + (end - start) / 2;
    sum += span.samples *
           (static_cast<double>(span.mean_bytes) + finding.growth_bytes_per_s.mid * seconds_between(middle, last_time));
    samples_since += span.samples;
  }
  if (samples_since == 0) return std::nullopt;
  return sum / samples_since;
}

ProcessGrowth SeriesState::growth_since(Timestamp onset, const Catalog& catalog) const {
  ProcessGrowth g;
  g.pid = key.pid;
  g.pid_start_ticks = key.pid_start_ticks;
  if (const ProcessInfo* process = catalog.process(process_key(key))) {
    g.command = process->command.empty() ? process->name : process->command;
    g.program = program_identity(*process).text;
    if (g.program.empty()) g.program = process->name;
  }
  if (const auto then = history.at(onset); then && last_time >= onset)
    g.at_onset_bytes = static_cast<double>(then->min_bytes);
  if (first_time > onset && last_time > onset)
    g.came_at = seconds_between(onset, first_time) / seconds_between(onset, last_time);
  if (!ended && samples > 0) g.now_bytes = static_cast<double>(history.spans().back().mean_bytes);
  if (detector && !ended) {
    const Finding its = finding();
    g.growing = grows(its);
    g.since_birth_bytes = rise_since(std::max(onset, its.onset.value_or(first_time)));
  }
  return g;
}

Found SeriesState::found() const {
  if (!detector) return last_found;
  Found v;
  v.time = last_time;
  v.series = id;
  v.finding = finding();
  if (ignored) {
    v.finding.leak = false;
    v.finding.stage = Stage::none;
  }
  for (const auto& d : dissenters) v.dissent.push_back(d->finding());
  return v;
}

void SeriesState::name_framework(Verdict& verdict, const Catalog& catalog) const {
  const ProcessInfo* process = nullptr;
  if (key.pid != 0)
    process = catalog.process(process_key(key));
  else if (verdict.suspect && verdict.suspect->pid != 0)
    process = catalog.process({verdict.suspect->pid, verdict.suspect->pid_start_ticks, key.host});
  if (is_of_host(key.metric) && grows(verdict.finding))
    verdict.advice = {
        "this is host memory, not GPU memory: 'memray attach' or heaptrack names the lines that allocate it, and if a "
        "library maps memory itself, the largest mappings in /proc/PID/smaps show it"};
  if (process == nullptr || process->framework.empty()) return;
  verdict.framework = process->framework;
  if (!grows(verdict.finding)) return;
  if (is_of_host(key.metric)) return;
  const ProgramKind kind = program_of(process->command, process->name, process->kind).kind;
  verdict.causes = framework_causes(process->framework, kind);
  verdict.advice = framework_advice(process->framework, kind);
}

SeriesView SeriesState::view(const Catalog& catalog, bool explain) const {
  SeriesView v;
  v.id = id;
  v.key = key;
  if (const DeviceInfo* info = catalog.device(device_key(key))) v.device = *info;
  if (key.pid != 0)
    if (const ProcessInfo* process = catalog.process(process_key(key))) v.process = *process;
  v.samples = samples;
  v.first = first_time;
  v.last = last_time;
  v.interval_s = period.median_s();
  v.used_bytes = last_bytes;
  v.peak_bytes = peak_bytes;
  v.ended = ended;
  v.paused = paused;
  v.ignored = ignored;
  if (!ended) v.load = load;
  if (leaks() && alert() == nullptr) v.paging = paging;
  if (!ended && facts) v.sites = facts->lifetimes().sites();
  v.alerts = alerts;
  v.suspicions = suspicions;
  if (is_total()) {
    v.utilisation_ratio = device->utilisation_ratio;
    v.gauges = device->gauges;
    v.health = device->health;
    v.last_xid = device->last_xid;
    v.runs = device->runs.all();
  }
  if (explain && detector) v.explain = detector->explain();
  return v;
}

}  // namespace vramtrack
