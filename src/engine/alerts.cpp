// From verdicts to reports: suspicions, leaks that are only shown, alerts (docs/design/0029-paging.md).
#include <fmt/format.h>

#include <utility>

#include "core/order.hpp"
#include "core/units.hpp"
#include "engine/band.hpp"
#include "engine/engine_core.hpp"

namespace vramtrack {
namespace {

/// An alert ends at once if this share of its growth is released.
constexpr double kGivenBackShare = 0.2;
/// A line that was examined in windows this much shorter is examined again.
constexpr double kLongerWindow = 1.5;

/// Whether its standstill is up to date: see Engine::Core::follow_standstill().
bool is_followed(const SeriesState& s) {
  if (s.leaks() || s.alert() != nullptr || s.suspicion() != nullptr) return true;
  const auto rise = s.detector ? s.detector->rise() : std::nullopt;
  return rise && rise->number == s.rise_number;
}

template <class T>
void keep_at_most(std::vector<T>& all, std::size_t most) {
  if (all.size() > most) all.erase(all.begin());
}

}  // namespace

void Engine::Core::decide(SeriesState& s) {
  if (!s.detector || s.ended) return;
  const bool wants = wants_leak(s);
  if ((s.leaks() || s.alert() != nullptr) && !wants) {
    if (endings.is_falling(s)) return;  // it is not known yet whether a run ends or a program continues
    no_leak_any_more(s);
  }
  if (!wants && !wants_suspicion(s)) return drop_suspicion(s, "the growth did not continue");
  if (s.ignored) return;
  // Reviewed only now and then: a finding costs microseconds, and neither severity nor the process set needs to be more
  // current than this.
  constexpr Duration kReview = std::chrono::seconds{60};
  if (s.reviewed && tick - *s.reviewed < kReview && s.reviewed_for_leak == wants) return;
  s.reviewed = tick;
  s.reviewed_for_leak = wants;
  const Verdict v = verdict(s);
  const Move move = move_of(s, v.finding);
  // A high level within a cycle is no evidence about the lows of cycles.
  if (move.window_s > kLongerWindow * s.move.window_s && cycle_of(s) > 0) s.standstill = {};
  s.move = move;
  if (!wants || !v.finding.leak) {
    if (s.leaks()) return clear(s, {AlertEnd::withdrawn, v.finding.because});
    if (v.finding.stage == Stage::none) return drop_suspicion(s, v.finding.because);  // the process set explains it
    return suspect(s, v);
  }
  if (!s.leaks()) leak_is_found(s, v);
  page(s, v);
}

/// How a growth pauses is learned from its beginning on, so that it is known when a suspicion or an alert depends on
/// it.
void Engine::Core::follow_standstill(SeriesState& s) {
  if (!s.detector || s.ended) return;
  const auto bytes = static_cast<double>(s.last_bytes);
  if (s.leaks() || s.alert() != nullptr || s.suspicion() != nullptr) {
    s.standstill.observe(s.last_time, bytes, s.move);
    return;
  }
  const auto rise = s.detector->rise();
  if (!rise) return;
  if (rise->number != s.rise_number) s.standstill = {};
  s.rise_number = rise->number;
  const double grown_s = seconds_between(rise->since, s.last_time);
  const double rate_bytes_per_s = grown_s > 0 ? std::max(0.0, bytes - rise->from_bytes) / grown_s : 0;
  std::optional<double> free_bytes;
  std::optional<Interval> left_s;
  if (s.limit_bytes) {
    free_bytes = std::max(0.0, *s.limit_bytes - bytes);
    if (rate_bytes_per_s > 0) left_s = Interval{0, *free_bytes / rate_bytes_per_s, 0};
  }
  s.standstill.observe(s.last_time, bytes, Move::of(free_bytes, rate_bytes_per_s, grown_s, left_s));
}

Move Engine::Core::move_of(const SeriesState& s, const Finding& finding) const {
  const auto used_bytes = static_cast<double>(s.last_bytes);
  return Move::of(s.limit_bytes ? std::optional(*s.limit_bytes - used_bytes) : std::nullopt,
                  finding.growth_bytes_per_s.mid, finding.onset ? seconds_between(*finding.onset, s.last_time) : 0,
                  finding.oom_in_s, cycle_of(s));
}

/// Detector::cycle_s(); for a device, the longest of its leaking parts.
double Engine::Core::cycle_of(const SeriesState& s) const {
  double cycle_s = s.detector ? s.line().detector->cycle_s() : 0;
  if (s.key.metric != Metric::device_used) return cycle_s;
  for (const SeriesId id : s.device->leaking)
    if (const SeriesState* part = series.find(id); part != nullptr && part->detector)
      cycle_s = std::max(cycle_s, part->detector->cycle_s());
  return cycle_s;
}

/// The curve no longer shows a leak. Near a full card its alert may stand all the same.
void Engine::Core::no_leak_any_more(SeriesState& s) {
  WhyOver why = s.leaks() ? why_over(s) : WhyOver{};
  if (s.alert() == nullptr || why.end != AlertEnd::withdrawn || s.last_line().detector->last_end_is_sure())
    return clear(s, std::move(why));
  const PageDecision decision = decide_page(page_facts(s, s.finding(), false), scale);
  if (decision.what != Paging::page) {
    if (!s.leaks()) why.reason = decision.why;
    return clear(s, std::move(why));
  }
  if (!s.leaks()) return;
  s.leaks_since.reset();
  part_changes(s);
}

const SeriesState& Engine::Core::what_ends(const SeriesState& s) const {
  const SeriesState* const device =
      s.key.metric == Metric::device_used || is_of_host(s.key.metric) ? nullptr : s.device->used;
  return device != nullptr && device->samples > 0 ? *device : s;
}

/// How long its line stands still, and the figures with which that is compared.
PageFacts Engine::Core::standstill_facts(const SeriesState& s, const Finding& finding) const {
  const SeriesState& line = s.line();
  PageFacts f;
  f.left_s = finding.oom_in_s;
  if (const auto& left_s = finding.oom_if_growth_continues_s; !f.left_s && left_s) f.left_s = Interval{0, *left_s, 0};
  f.still_s = line.standstill.still_s();
  f.flat_s = line.standstill.flat_s();
  f.usual_pause_s = line.standstill.usual_s();
  f.period_s = line.period.median_s();
  f.cycle_s = cycle_of(s);
  // If the device does not fill up, the others release what the part takes.
  const SeriesState& total = what_ends(s);
  if (&total != &s && is_followed(total) && total.standstill.still_s() > f.still_s) {
    f.of_device = true;
    f.still_s = total.standstill.still_s();
    f.flat_s = total.standstill.flat_s();
    f.usual_pause_s = total.standstill.usual_s();
  }
  return f;
}

PageFacts Engine::Core::page_facts(const SeriesState& s, const Finding& finding, bool leak) const {
  PageFacts f = standstill_facts(s, finding);
  f.stage = finding.stage;
  f.leak = leak;
  f.at_rest = leak && !(finding.growth_bytes_per_s.mid > 0);
  f.basis = leak ? basis_of(s) : Basis::curve;
  f.left_s = finding.oom_in_s;
  f.grown_s = finding.onset ? seconds_between(*finding.onset, s.last_time) : 0;
  f.lead_s = config.detection.lead_time_minutes * kSecondsPerMinute;
  f.least_s = config.detection.minimum_duration_minutes * kSecondsPerMinute;
  f.paged = s.alert() != nullptr;
  f.held = hold_of(s) != nullptr;
  const SeriesState& total = what_ends(s);
  const double level = leak ? std::max(static_cast<double>(total.last_bytes), total.standstill.highest_bytes())
                            : static_cast<double>(total.last_bytes);
  if (total.limit_bytes && *total.limit_bytes > 0) {
    f.full_ratio = level / *total.limit_bytes;
    f.free_bytes = *total.limit_bytes - static_cast<double>(total.last_bytes);
    if (leak && !f.paged) f.left_bytes = s.line().detector->most_left_bytes();
  }
  if (runs) f.stood_bytes = runs->stood_bytes(s);
  f.used_bytes = static_cast<double>(s.last_bytes);
  const Alert* const alert = s.alert();
  if (!leak && alert != nullptr && alert->finding.onset) {
    const auto then = s.history.at(*alert->finding.onset);
    const double begun_bytes = then ? static_cast<double>(then->min_bytes) : 0;
    const double risen_bytes = s.standstill.highest_bytes() - begun_bytes;
    f.given_back =
        static_cast<double>(s.last_bytes) < s.standstill.highest_bytes() - kGivenBackShare * std::max(0.0, risen_bytes);
  }
  if (leak && finding.onset) f.in_band = band(total, *finding.onset).has_value();
  return f;
}

/// A rise that now stands still is not reported as a leak if nobody has been notified of it before: it has ended, as
/// far as can be seen.
void Engine::Core::leave_to_standstill(const SeriesState& s, Explained& v) const {
  Finding& f = v.finding;
  const bool is_new = !s.leaks() && s.alert() == nullptr && (f.leak || s.suspicion() == nullptr);
  if (!is_new || f.stage == Stage::none || s.runs_trend || !is_followed(s) || s.ended) return;
  const PageFacts facts = standstill_facts(s, f);
  if (!has_stood_still(facts)) return;
  f.leak = false;
  f.stage = s.suspicion() != nullptr ? Stage::suspected : Stage::none;
  f.state = State::growing;
  f.pattern = Pattern::none;
  f.oom_in_s.reset();
  f.oom_if_growth_continues_s.reset();
  f.because = fmt::format("{}; {}", still_words(facts, scale), f.because);
}

std::optional<Band> Engine::Core::band(const SeriesState& total, Timestamp onset) const {
  const auto& device_runs = total.device->runs.all();
  return band_of(total.history, device_runs.empty() ? total.first_time : device_runs.back().begin, onset);
}

/// The evidence, besides the curve, that it leaks; for a device, the evidence about its parts.
Basis Engine::Core::basis_of(const SeriesState& s) const {
  if (s.key.metric == Metric::allocator_allocated || live_memory_leaks(s)) return Basis::allocator;
  if (s.key.metric != Metric::device_used || !knows_parts(s))
    return std::max(s.detector->basis(), s.line().detector->basis());
  Basis most = Basis::curve;
  for (const SeriesId id : s.device->leaking)
    if (const SeriesState* part = series.find(id); part != nullptr && part->detector)
      most = std::max(most, basis_of(*part));
  return most;
}

/// From here on, it is shown as a leak. The record of it is its suspicion, until an alert is raised.
void Engine::Core::leak_is_found(SeriesState& s, const Verdict& v) {
  s.leaks_since = tick;
  if (s.alert() == nullptr) record_leak(s, v);
  part_changes(s);
}

void Engine::Core::record_leak(SeriesState& s, const Verdict& v) {
  suspect(s, v);
  s.suspicion()->finding = v.finding;
  s.suspicion()->severity = v.severity;
}

void Engine::Core::page(SeriesState& s, const Verdict& v) {
  const PageDecision decision = decide_page(page_facts(s, v.finding, true), scale);
  s.paging = decision.why;
  if (Alert* const alert = s.alert(); alert != nullptr) {
    if (decision.what == Paging::withdraw) {
      take_back(s, {AlertEnd::withdrawn, decision.why});
      return record_leak(s, v);
    }
    if (v.severity <= alert->severity) return;
    alert->severity = v.severity;
    announce(*alert, AlertNews::escalated);
    return;
  }
  if (decision.what != Paging::page) return;
  Alert alert{s.id, tick, {}, AlertEnd::standing, v.severity, v.finding, {}, {}};
  alert.paged_because = decision.why;
  if (const Alert* suspicion = s.suspicion()) {
    if (suspicion->raised < tick) alert.suspected_for_s = seconds_between(suspicion->raised, tick);
    s.suspicions.pop_back();
  }
  s.alerts.push_back(std::move(alert));
  keep_at_most(s.alerts, SeriesState::kMaxAlerts);
  announce(s.alerts.back(), AlertNews::raised);
}

/// The alert of a leak, or one that another part of the engine keeps, has changed.
void Engine::Core::announce(Alert& alert, AlertNews news) {
  std::vector<Alert> renamed;
  if (news == AlertNews::raised) {
    const SeriesKey& key = catalog.key(alert.series);
    renamed = rename(incidents.raise(key, alert, work_of(key, alert)), alert.incident);
  }
  changes.push_back({alert, news, {}, std::move(renamed)});
}

/// What leaks: the process, or for a device the first of its leaking processes. The same for each rank of a job and for
/// its next run.
std::string Engine::Core::work_of(const SeriesKey& key, const Alert& alert) const {
  if (alert.kind != AlertKind::leak || is_of_host(key.metric)) return {};
  std::vector<ProcessKey> leaking;
  if (const SeriesState* const s = series.find(alert.series); key.pid == 0 && s != nullptr) {
    for (const SeriesId part : s->device->leaking)
      if (catalog.holds(part)) leaking.push_back(process_key(catalog.key(part)));
    if (const auto suspect = leaking.empty() && s->detector ? verdict(*s).suspect : std::nullopt)
      leaking.push_back({suspect->pid, suspect->pid_start_ticks, key.host});
  } else {
    leaking.push_back(process_key(key));
  }
  for (const ProcessKey& one : leaking)
    if (const ProcessInfo* const process = one.pid == 0 ? nullptr : catalog.process(one); process != nullptr)
      if (std::string work = sibling_group(*process); !work.empty()) return work;
  return {};
}

/// Only leaks of several series are one incident.
std::vector<Alert> Engine::Core::rename(const std::vector<SeriesKey>& leaking, const std::string& incident) {
  std::vector<Alert> out;
  for (const SeriesKey& key : leaking) {
    const auto id = catalog.find(key);
    SeriesState* const s = id ? series.find(*id) : nullptr;
    if (s == nullptr || s->alert() == nullptr) continue;
    s->alert()->incident = incident;
    out.push_back(*s->alert());
  }
  return out;
}

void Engine::Core::report_changes() {
  const auto place = [this](const AlertChange& change) {
    if (catalog.key(change.alert.series).metric != Metric::device_used) return 1;
    return change.news == AlertNews::cleared ? 2 : 0;
  };
  order(changes, [&](const AlertChange& a, const AlertChange& b) { return place(a) < place(b); });
  for (AlertChange& change : std::exchange(changes, {})) {
    change.incident = incidents.report(catalog.key(change.alert.series), change.alert, change.news);
    change.alert.incident = change.incident.id;
    if (callback) callback(change);
  }
}

void Engine::Core::suspect(SeriesState& s, const Verdict& v) {
  if (s.suspicion() != nullptr || s.alert() != nullptr) return;
  if (!s.leaks() && !s.detector->rise()) s.standstill = {};  // it belonged to an earlier growth
  s.suspicions.push_back(Alert{s.id, tick, {}, AlertEnd::standing, Severity::ok, v.finding, {}, {}});
  keep_at_most(s.suspicions, SeriesState::kMaxSuspicions);
  part_changes(s);
}

void Engine::Core::drop_suspicion(SeriesState& s, std::string reason) {
  Alert* const suspicion = s.suspicion();
  if (suspicion == nullptr) return;
  suspicion->cleared = tick;
  WhyOver{AlertEnd::withdrawn, std::move(reason)}.write_to(*suspicion);
}

void Engine::Core::take_back(SeriesState& s, WhyOver why) {
  Alert& alert = *s.alert();
  alert.cleared = tick;
  std::move(why).write_to(alert);
  announce(alert, AlertNews::cleared);
}

void Engine::Core::clear(SeriesState& s, WhyOver why) {
  if (!s.leaks() && s.alert() == nullptr) return;
  s.leaks_since.reset();
  s.reviewed.reset();
  s.paging.clear();
  part_changes(s);
  // On a device, what looks like a program releasing memory is a program that has just ended.
  const auto has_just_ended = [&](const std::optional<Timestamp>& when) {
    return when && seconds_between(*when, tick) <= s.release_s();
  };
  if (why.end == AlertEnd::withdrawn && s.key.metric == Metric::device_used && has_just_ended(s.device->process_ended))
    why = {AlertEnd::released, "a process on the device ended and its memory was released"};
  if (Alert* const suspicion = s.suspicion(); suspicion != nullptr && s.alert() == nullptr) {
    suspicion->cleared = tick;
    return std::move(why).write_to(*suspicion);
  }
  if (s.alert() != nullptr) take_back(s, std::move(why));
}

}  // namespace vramtrack
