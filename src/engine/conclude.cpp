// From findings to verdicts: who explains a device's growth, and the View of everything.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/limit_end.hpp"
#include "core/order.hpp"
#include "engine/engine_core.hpp"
#include "engine/stray_contexts.hpp"

namespace vramtrack {
namespace {

constexpr std::string_view kNothingAfter = "there are no samples after memory ran out";

/// A series at rest is not reported as growing, and one that has ended has no forecast, whichever stage decided that.
void drop_what_does_not_go_on(Finding& f, bool ended) {
  if (!f.leak && (f.state == State::steady || f.state == State::cycling || f.state == State::too_short)) {
    f.growth_bytes_per_s = {};
    f.onset.reset();
    ended = true;
  }
  if (!ended) return;
  f.oom_in_s.reset();
  f.oom_if_growth_continues_s.reset();
}

}  // namespace

Attribution Engine::Core::attribution(const SeriesState& device, const Finding& finding) const {
  const Timestamp onset = finding.onset.value_or(device.first_time);
  std::vector<ProcessGrowth> processes;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (s.key.pid != 0 && s.key.metric == Metric::process_used) processes.push_back(s.growth_since(onset, catalog));
  });
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (s.key.metric != Metric::host_anonymous || !is_part(s)) return;
    for (ProcessGrowth& its : processes) {
      if (its.pid != s.key.pid || its.pid_start_ticks != s.key.pid_start_ticks) continue;
      const ProcessGrowth more = s.growth_since(onset, catalog);
      its.at_onset_bytes += more.at_onset_bytes;
      its.now_bytes += more.now_bytes;
      its.growing = its.growing || more.growing;
      its.since_birth_bytes += more.since_birth_bytes;
    }
  });
  return attribute(device.rise_since(onset), processes);
}

/// If another process has released memory since the growth began, the device's own past cannot show when memory ends.
/// The past of the growing process can: its forecast is based on the device's free memory.
void Engine::Core::take_figures_of_suspect(const SeriesState& device, Attributed& v) const {
  if (!v.suspect || !v.finding.onset) return;
  const auto& last_fall = device.device->last_fall;
  if (!endings.is_falling(device) && (!last_fall || *last_fall < *v.finding.onset)) return;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (!s.is(v.suspect) || !s.detector) return;
    const Finding its = s.finding();
    if (!grows(its)) return;
    v.finding.growth_bytes_per_s = its.growth_bytes_per_s;
    v.finding.r_squared = its.r_squared;
    v.finding.confidence = std::max(v.finding.confidence, its.confidence);
    v.finding.oom_in_s = its.oom_in_s;
  });
}

/// Conclusions from growth before the end concern a run that is over, until the series is higher than it was then.
void Engine::Core::leave_the_past(const SeriesState& device, Found& v) const {
  const DeviceState& since = *device.device;
  if (!since.last_end) return;
  const End& end = *since.last_end;
  const bool higher = device.last_bytes >= end.used_bytes && !since.held_since_end(endings.no_growth_bytes());
  const bool flat = device.last_bytes <= since.floor_since_end + endings.no_growth_bytes();
  const bool is_over =
      since.samples_since_end == 0 && since.reported_out_of_memory && *since.reported_out_of_memory >= end.time;
  const auto is_past = [&](const Finding& f) { return grows(f) && (!f.onset || *f.onset <= end.time) && !higher; };
  const auto forget = [&](Finding& f) {
    const DetectionConfig& c = config.detection;
    const bool long_enough = since.samples_since_end >= static_cast<std::uint64_t>(c.minimum_samples) &&
                             seconds_between(end.time, device.last_time) >= c.minimum_duration_minutes * 60;
    Finding now;
    now.detector = f.detector;
    now.confidence = kUnknownConfidence;
    now.state = flat && long_enough ? State::steady : State::too_short;
    now.because = is_over ? std::string(kNothingAfter)
                          : std::string(now.state == State::steady
                                            ? "memory has not grown since the run that grew ended"
                                            : "too few samples since the run that grew ended to tell what comes next");
    f = std::move(now);
  };
  // The swings and the levels of a run that grew belong to the past, too.
  if (is_past(v.finding) || is_over || (!grows(v.finding) && end.growth_bytes_per_s && flat)) forget(v.finding);
  for (Finding& dissent : v.dissent)
    if (is_past(dissent)) forget(dissent);
}

/// If no source reports who holds what, a total that has moved up and down between these levels before does not run out
/// of memory within them: memory that one program releases, another takes.
void Engine::Core::leave_to_band(const SeriesState& s, Finding& f) const {
  if (!grows(f) || !f.onset || !s.detector) return;
  const auto known = band(s, *f.onset);
  if (!known || s.detector->basis() != Basis::curve) return;
  f.leak = false;
  f.stage = Stage::none;
  f.state = State::cycling;
  f.pattern = Pattern::none;
  f.confidence = std::min(f.confidence, 1.0 / (known->swings + 2));  // Laplace's rule of succession
  f.because =
      fmt::format("has moved up and down between {} and {} before: {} rises like this one were reversed; {}",
                  scale.bytes(known->lowest_bytes), scale.bytes(known->highest_bytes), known->swings, f.because);
}

/// An alert that stands near a full card although the curve no longer shows a leak is reported as such.
void Engine::Core::hold_near_full(const SeriesState& s, Decided& v) const {
  if (s.leaks() || s.alert() == nullptr || v.finding.leak || s.ended) return;
  Finding& f = v.finding;
  f.leak = true;
  f.stage = Stage::confirmed;
  f.state = State::leaking;
  f.pattern = s.alert()->finding.pattern;
  f.because = fmt::format("has not grown for {}, but little memory is left: the alert stays active; {}",
                          scale.span(s.standstill.still_s()), f.because);
}

/// Where the host's memory ends for the process; nullopt: unknown.
std::optional<MemoryWall> Engine::Core::wall_of_host(const SeriesState& process) const {
  const auto* const known = hosts.of(process_key(process.key));
  if (known == nullptr || known->limit_bytes == 0 || !known->holding.available_bytes) return std::nullopt;
  const std::uint64_t left_bytes = std::min(*known->holding.available_bytes, known->limit_bytes);
  return MemoryWall{known->limit_bytes, known->limit_bytes - left_bytes, 0, 0, known->limit_name};
}

/// The wall at which the series ends before its device does; nullopt if there is none.
std::optional<Walls::Nearest> Engine::Core::wall_in_force(const SeriesState& s) const {
  auto nearest = s.ended ? std::nullopt : walls.nearest(s);
  if (!nearest || !s.limit_bytes || nearest->end_bytes > *s.limit_bytes) return std::nullopt;
  return nearest;
}

/// Whether a part of a device that uses the host's memory ends with it: swap adds no room for the device.
bool Engine::Core::ends_with_device(const SeriesState& s) const {
  if (!s.device->shares_host_memory || !is_part(s) || !s.device->capacity_bytes) return false;
  if (!is_of_host(s.key.metric)) return true;
  const auto host = wall_of_host(s);
  return !host || host->name == kMachineMemory ||
         s.limit_bytes.value_or(0) - static_cast<double>(s.last_bytes) <
             static_cast<double>(host->bytes - host->used_bytes);
}

std::optional<MemoryWall> Engine::Core::wall(const SeriesState& process) const {
  if (process.ended) return std::nullopt;
  const auto growth_bytes_per_s = [&] {
    return growth_together(process, process.detector ? process.finding() : Finding{});
  };
  if (auto host = is_of_host(process.key.metric) ? wall_of_host(process) : std::nullopt) {
    const std::uint64_t left_bytes = host->bytes - host->used_bytes;
    const double room_bytes = process.limit_bytes.value_or(0) - static_cast<double>(process.last_bytes);
    if (ends_with_device(process) && room_bytes < static_cast<double>(left_bytes)) {
      const double capacity_bytes = *process.device->capacity_bytes;
      host->bytes = static_cast<std::uint64_t>(capacity_bytes);
      host->used_bytes = static_cast<std::uint64_t>(std::clamp(capacity_bytes - room_bytes, 0.0, capacity_bytes));
      host->name = kMachineMemory;
    }
    host->growth_bytes_per_s = growth_bytes_per_s();
    return host;
  }
  const auto nearest = wall_in_force(process);
  if (!nearest) return std::nullopt;
  return MemoryWall{static_cast<std::uint64_t>(nearest->bytes), static_cast<std::uint64_t>(nearest->used_bytes),
                    static_cast<std::uint32_t>(nearest->sharing.size()), growth_bytes_per_s(), nearest->name};
}

/// "; its memory is limited to 8.0 GiB by dmem.max of /pod"; empty: its device ends it.
std::string Engine::Core::ends_by(const SeriesState& process) const {
  const auto its = wall(process);
  if (!its) return {};
  return fmt::format("; its memory is limited to {} by {}", scale.bytes(static_cast<double>(its->bytes)), its->name);
}

/// The series whose memory ends where that of `s` does, by whatever limit, including itself.
std::vector<const SeriesState*> Engine::Core::sharing(const SeriesState& s) const {
  if (auto nearest = wall_in_force(s)) return std::move(nearest->sharing);
  std::vector<const SeriesState*> all;
  if (ends_with_device(s)) {
    series.for_device(device_key(s.key), [&](const SeriesState& other) {
      if (!other.ended && is_part(other)) all.push_back(&other);
    });
  } else if (const auto host = s.key.metric == Metric::host_anonymous ? wall_of_host(s) : std::nullopt) {
    series.for_each([&](const SeriesState& other) {
      if (other.ended || other.key.metric != Metric::host_anonymous || other.key.host != s.key.host) return;
      const auto* const its = hosts.of(process_key(other.key));
      if (host->name == kMachineMemory || (its != nullptr && its->limit_name == host->name)) all.push_back(&other);
    });
  }
  return all;
}

/// The growth of all that share its limit; `its`: the finding about the series.
double Engine::Core::growth_together(const SeriesState& s, const Finding& its) const {
  if (!grows(its)) return 0;
  double all_bytes_per_s = std::max(0.0, its.growth_bytes_per_s.mid);
  for (const SeriesState* other : sharing(s)) {
    if (other->id == s.id || !other->detector) continue;
    const Finding theirs = other->finding();
    if (grows(theirs)) all_bytes_per_s += std::max(0.0, theirs.growth_bytes_per_s.mid);
  }
  return all_bytes_per_s;
}

/// All series that share its limit fill it together. Returns the words for that; empty if it grows
/// alone.
std::string Engine::Core::fill_together(const SeriesState& s, Finding& f) const {
  if ((!f.oom_in_s && !f.oom_if_growth_continues_s) || !grows(f) || f.growth_bytes_per_s.mid <= 0) return {};
  const double all_bytes_per_s = growth_together(s, f);
  const double share = f.growth_bytes_per_s.mid / all_bytes_per_s;
  if (share > 0.99) return {};
  if (f.oom_in_s) f.oom_in_s = Interval{f.oom_in_s->low * share, f.oom_in_s->mid * share, f.oom_in_s->high * share};
  if (f.oom_if_growth_continues_s) *f.oom_if_growth_continues_s *= share;
  return fmt::format(" at {} together", scale.scaled_rate(all_bytes_per_s));
}

/// Names who limits the process's share of the host's memory, once it grows.
void Engine::Core::end_with_host(const SeriesState& s, Limited& v) const {
  const auto limit = wall(s);
  if (!limit || !grows(v.finding)) return;
  v.finding.because += fmt::format("; it is host memory, which is limited to {} by {}; {} of that are in use",
                                   scale.bytes(static_cast<double>(limit->bytes)), limit->name,
                                   scale.bytes(static_cast<double>(limit->used_bytes)));
  if (const std::string rate = fill_together(s, v.finding); !rate.empty())
    v.finding.because += "; it and others fill that" + rate;
}

/// Names who limits the process, if that ends it before its device does.
void Engine::Core::end_at_wall(const SeriesState& process, Limited& v) const {
  const auto wall = wall_in_force(process);
  if (!wall) return;
  v.finding.because += ends_by(process);
  if (wall->sharing.size() < 2) return;
  v.finding.because +=
      fmt::format(", of which {} processes use {}", wall->sharing.size(), scale.bytes(wall->used_bytes));
  if (const std::string rate = fill_together(process, v.finding); !rate.empty())
    v.finding.because += " and grow" + rate;
}

/// Memory of a device that is the host's ends with the host's, and everything on it fills that together.
void Engine::Core::end_with_shared_memory(const SeriesState& s, Finding& f) const {
  const DeviceState& device = *s.device;
  if (s.ended || !device.shares_host_memory || is_of_host(s.key.metric) || !grows(f)) return;
  constexpr double kClearly = 0.99;  // both figures may be the same one, read at different moments
  if (s.key.metric == Metric::device_used && device.host_end_bytes &&
      *device.host_end_bytes < kClearly * device.capacity_bytes.value_or(0))
    f.because += fmt::format("; the host's memory limits it to {}", scale.bytes(*device.host_end_bytes));
  if (!ends_with_device(s) || wall_in_force(s)) return;
  if (const std::string rate = fill_together(s, f); !rate.empty())
    f.because += "; it and others fill the host's memory" + rate;
}

/// A device's growth ends where that of the process behind it does, if that is sooner: at a wall of the process.
void Engine::Core::end_with_suspect(const SeriesState& device, Attributed& v) const {
  Finding& f = v.finding;
  if (!grows(f) || !v.suspect) return;
  const auto end_s = [](const Finding& of) -> std::optional<double> {
    return of.oom_in_s ? std::optional(of.oom_in_s->mid) : of.oom_if_growth_continues_s;
  };
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (!is_part_of(s, v.suspect) || !s.detector || !grows(s.finding())) return;
    const auto now_s = end_s(f);
    const Finding its = verdict(s).finding;
    const auto its_s = end_s(its);
    if (!its_s || (now_s && *now_s <= *its_s)) return;
    if (!now_s) {
      f.oom_if_growth_continues_s = its_s;
    } else {
      const double sooner = *its_s / *now_s;
      if (f.oom_in_s)
        f.oom_in_s = Interval{f.oom_in_s->low * sooner, f.oom_in_s->mid * sooner, f.oom_in_s->high * sooner};
      if (f.oom_if_growth_continues_s) *f.oom_if_growth_continues_s *= sooner;
    }
    if (const auto limit = wall(s); limit && f.because.find(limit->name) == std::string::npos)
      f.because += fmt::format("; the memory of pid {} is limited to {} by {}", s.key.pid,
                               scale.bytes(static_cast<double>(limit->bytes)), limit->name);
  });
}

/// The alert of a process that a policy keeps from growing stands, whatever its curve shows meanwhile.
void Engine::Core::hold_by_policy(const SeriesState& s, Decided& v) const {
  if (is_of_device(s.key.metric) || s.alert() == nullptr || s.ended) return;  // a device has the words of its part
  const Hold* const hold = hold_of(s);
  if (hold == nullptr) return;
  Finding& f = v.finding;
  if (!f.leak) {
    f = s.alert()->finding;
    f.growth_bytes_per_s = {};
    f.oom_in_s.reset();
    f.oom_if_growth_continues_s.reset();
    f.stage = Stage::confirmed;
    v.severity = s.alert()->severity;
  }
  f.because = fmt::format("{}, for {} now; it will not free its memory by itself; {}", hold->words,
                          scale.duration(seconds_between(hold->since, s.last_time)), f.because);
}

/// A device's growth as its total and its processes show it, if the memory that none of them holds is unknown.
void Engine::Core::judge_by_total(const SeriesState& device, Attributed& v) const {
  Finding& f = v.finding;
  const Attribution a = attribution(device, f);
  v.suspect = a.suspect;
  take_figures_of_suspect(device, v);
  if (!v.suspect && !a.any_process && catalog.processes_are_listed)
    v.suspect = Suspect{0, 0, "no visible process", 1.0};
  if (f.stage != Stage::none && a.churn_share >= kChurnExplains) {
    f.leak = false;
    f.stage = Stage::none;
    f.state = State::steady;
    f.pattern = Pattern::none;
    f.confidence = std::min(f.confidence * (1 - a.churn_share), 0.5);
    f.because = "processes that started in the meantime explain the rise (" +
                std::to_string(static_cast<int>(a.churn_share * 100)) + " % of it)";
  }
  // Names what would decide a rise that one series cannot decide (docs/detectors/judge.md, "What cannot be decided").
  if (f.state == State::growing && !a.any_process && !catalog.processes_are_listed)
    f.because += "; the memory of each process would show whether jobs come and stay, or something leaks";
}

Found Engine::Core::found(const SeriesState& s) const {
  Found v = s.found();
  if (s.is_total()) leave_the_past(s, v);
  if (s.reported_end && !v.finding.leak) {
    v.end = s.reported_end;
    if (s.last_time <= s.reported_end->time) v.finding.because = kNothingAfter;
  }
  return v;
}

Explained Engine::Core::explained(const SeriesState& s, Found found) const {
  Explained v(std::move(found));
  if (s.detector && (s.key.metric != Metric::device_used || !knows_parts(s))) leave_to_standstill(s, v);
  leave_to_allocator(s, v);
  if (s.key.metric != Metric::process_used) return v;
  leave_to_jobs(s, v);
  suspect_by_runs(s, v);
  return v;
}

Limited Engine::Core::limited(const SeriesState& s, Explained explained) const {
  Limited v(std::move(explained));
  end_at_wall(s, v);
  if (is_of_host(s.key.metric)) end_with_host(s, v);
  if (is_part(s)) end_with_shared_memory(s, v.finding);
  return v;
}

Attributed Engine::Core::attributed(const SeriesState& s, Limited limited) const {
  Attributed v(std::move(limited));
  if (s.key.metric != Metric::device_used) return v;
  if (knows_parts(s))
    judge_by_parts(s, v);
  else if (grows(v.finding))
    judge_by_total(s, v);
  end_with_suspect(s, v);
  end_with_shared_memory(s, v.finding);
  return v;
}

Decided Engine::Core::decided(const SeriesState& s, Attributed attributed) const {
  Decided v(std::move(attributed));
  if (s.is_total() && !knows_parts(s)) leave_to_band(s, v.finding);
  hold_near_full(s, v);
  hold_by_policy(s, v);
  return v;
}

Verdict Engine::Core::shown(const SeriesState& s, Decided decided) const {
  const Severity severity = decided.severity.value_or(severity_of(decided.finding, config.severity));
  Verdict v{decided.time,
            decided.series,
            severity,
            std::move(decided.finding),
            std::move(decided.dissent),
            std::move(decided.suspect),
            {},
            {},
            {},
            std::move(decided.end)};
  s.name_framework(v, catalog);
  if (runs)
    runs->add_advice(s, v);
  else if (s.key.metric == Metric::process_used && !v.finding.leak && v.finding.state == State::growing)
    v.finding.because += "; an earlier run of the program would show which";
  if (s.is_total() && !v.finding.leak) v.end = s.device->last_end;
  drop_what_does_not_go_on(v.finding, s.ended);
  return v;
}

Verdict Engine::Core::verdict(const SeriesState& s) const {
  return shown(s, decided(s, attributed(s, limited(s, explained(s, found(s))))));
}

namespace {

/// Fills in what is known so far about a run that continues.
void describe_present_run(SeriesView& s) {
  if (s.runs.empty() || s.runs.back().end) return;
  Run& run = s.runs.back();
  run.first_alert = first_alert_of(run, s.alerts);
  const Finding& f = s.verdict.finding;
  if (!grows(f)) return;
  run.growth_bytes_per_s = f.growth_bytes_per_s.mid;
  run.onset = f.onset;
}

/// A device's growth and that of its suspect are one, with one beginning.
void join_growths(View& view) {
  std::unordered_map<DeviceKey, const SeriesView*, KeyHash> devices;
  for (const SeriesView& s : view.series)
    if (s.key.metric == Metric::device_used && s.verdict.suspect && s.verdict.finding.onset)
      devices[device_key(s.key)] = &s;
  for (SeriesView& s : view.series) {
    if (s.key.metric != Metric::process_used || s.ended) continue;
    const auto device = devices.find(device_key(s.key));
    if (device == devices.end()) continue;
    const Suspect& suspect = *device->second->verdict.suspect;
    if (s.key.pid == suspect.pid && s.key.pid_start_ticks == suspect.pid_start_ticks)
      take_what_the_total_shows(device->second->verdict.finding, view.time, s.verdict.finding);
  }
}

/// Order of a device's processes: live before ended, then leaking before others, then growing ones, then larger ones.
bool before(const SeriesView& a, const SeriesView& b) {
  if (a.ended != b.ended) return b.ended;
  if (a.verdict.finding.leak != b.verdict.finding.leak) return a.verdict.finding.leak;
  if (grows(a.verdict.finding) != grows(b.verdict.finding)) return grows(a.verdict.finding);
  if (is_of_host(a.key.metric) != is_of_host(b.key.metric)) return is_of_host(b.key.metric);
  return a.used_bytes > b.used_bytes;
}

}  // namespace

std::shared_ptr<View> Engine::view(bool explain) const {
  auto view = std::make_shared<View>();
  const auto add_other_alerts = [&](const SeriesState& s, SeriesView& into) {
    if (s.key.metric == Metric::device_unattributed)
      into.unreleased_bytes = static_cast<std::uint64_t>(core_->unreleased.bytes_of(s.id));
    if (s.key.metric != Metric::process_used) return;
    if (const Stall* stall = core_->stalls.of(process_key(s.key)); stall != nullptr && !s.ended) into.stall = *stall;
    for (const std::vector<Alert>* alerts : std::array{core_->stalls.alerts_of(s.id), core_->unreleased.alerts_of(s.id),
                                                       core_->headrooms.alerts_of(s.id), core_->hosts.alerts_of(s.id)})
      if (alerts != nullptr) into.alerts.insert(into.alerts.end(), alerts->begin(), alerts->end());
    order(into.alerts, [](const Alert& a, const Alert& b) { return a.raised < b.raised; });
  };
  view->time = core_->tick;
  view->clock_is_relative = core_->catalog.clock_is_relative;
  view->scale = core_->scale;
  view->notices.assign(core_->notices.begin(), core_->notices.end());
  view->warnings = stray_contexts(core_->series, core_->catalog);
  std::vector<const SeriesState*> states;
  core_->series.for_each([&](const SeriesState& s) {
    if (s.samples == 0) return;
    states.push_back(&s);
    view->series.push_back(s.view(core_->catalog, explain));
    view->series.back().verdict = core_->verdict(s);
  });
  join_growths(*view);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const SeriesState& s = *states[i];
    SeriesView& shown_series = view->series[i];
    describe_present_run(shown_series);
    shown_series.headroom = core_->headroom(s);
    shown_series.wall = core_->wall(s);
    if (const MemoryWall* const at_end = s.ended ? core_->walls.at_end(s.id) : nullptr) shown_series.wall = *at_end;
    shown_series.still_holds = core_->still_holding.of(s);
    shown_series.mark_growth = core_->marks.growth_of(s, shown_series.verdict.finding);
    const bool has_host = s.key.metric == Metric::process_used || is_of_host(s.key.metric);
    if (const auto* known = has_host && !s.ended ? core_->hosts.of(process_key(s.key)) : nullptr)
      if (known->holding != HostHolding{}) shown_series.host = known->holding;
    shown_series.level_bytes = s.level_of(shown_series.verdict.finding);
    add_other_alerts(s, shown_series);
  }
  order(view->series, [](const SeriesView& a, const SeriesView& b) {
    if ((a.key.pid != 0) != (b.key.pid != 0)) return a.key.pid == 0;
    if (a.key.host != b.key.host) return a.key.host < b.key.host;
    const int ai = a.device.index.value_or(1 << 20);
    const int bi = b.device.index.value_or(1 << 20);
    if (ai != bi) return ai < bi;
    if (a.key.pid == 0) return false;
    if (a.key.device_id != b.key.device_id) return a.key.device_id < b.key.device_id;
    return before(a, b);
  });
  return view;
}

}  // namespace vramtrack
