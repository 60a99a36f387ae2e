#include "report/conclusion.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {
namespace {

Verdict verdict_of_run(const View& view, const SeriesView& series, const Alert& alert) {
  Verdict out = series.verdict;
  const End& end = *out.end;
  out.severity = alert.severity;
  out.finding = alert.finding;
  out.finding.state = State::leaking;
  if (end.confidence) out.finding.confidence = std::max(out.finding.confidence, *end.confidence);
  if (end.r_squared) out.finding.r_squared = *end.r_squared;
  out.finding.oom_in_s.reset();
  out.finding.oom_if_growth_continues_s.reset();
  if (end.growth_bytes_per_s) {
    const double rate = *end.growth_bytes_per_s;
    out.finding.growth_bytes_per_s = {rate, rate, rate};
  }
  if (end.onset) out.finding.onset = end.onset;
  out.dissent.clear();  // it describes what came after
  // The reasons recorded when its process ended: a limit may have changed since the alert.
  for (const SeriesView* s : same_end(series, view))
    if (s != &series && s->ended && s->wall && grows(s->verdict.finding))
      out.finding.because = fmt::format("pid {} grows: {}", s->key.pid, s->verdict.finding.because);
  return out;
}

/// Whether `process` explains the growth of its device.
bool explains(const SeriesView& process, const SeriesView& device) {
  const auto& suspect = device.verdict.suspect;
  return suspect && suspect->pid != 0 && suspect->pid == process.key.pid &&
         suspect->pid_start_ticks == process.key.pid_start_ticks && device_key(device.key) == device_key(process.key);
}

/// The earliest onset in a series of the same growth; `onset` is that of `series`.
Timestamp first_onset(const View& view, const SeriesView& series, Timestamp onset) {
  if (is_of_ended_run(series) || (series.key.pid != 0 && series.verdict.end)) {
    for (const SeriesView* s : same_end(series, view))
      if (s->verdict.end->onset) onset = std::min(onset, *s->verdict.end->onset);
    return onset;
  }
  const bool is_device = series.key.pid == 0;
  if (is_device && !series.verdict.suspect) return onset;
  for (const SeriesView& s : view.series) {
    if (!is_device && s.key.pid != 0) break;  // devices come first in a View
    if (is_device ? s.key.pid == 0 || !explains(s, series) : !explains(series, s)) continue;
    const Finding& f = s.verdict.finding;
    if (grows(f) && f.onset) onset = std::min(onset, *f.onset);
  }
  return onset;
}

}  // namespace

bool shows_leak(const Alert& alert) {
  return alert.finding.leak && alert.ended != AlertEnd::withdrawn;
}

const Alert* leak_at_end(const SeriesView& series) {
  if (!series.verdict.end) return nullptr;
  const Timestamp end = series.verdict.end->time;
  const auto stood = [end](const Alert& a) {
    return shows_leak(a) && a.raised <= end && (!a.cleared || *a.cleared >= end);
  };
  for (const std::vector<Alert>* all : {&series.alerts, &series.suspicions})
    if (const auto found = std::find_if(all->begin(), all->end(), stood); found != all->end()) return &*found;
  return nullptr;
}

std::vector<const SeriesView*> same_end(const SeriesView& series, const View& view) {
  std::vector<const SeriesView*> out = {&series};
  const End& end = *series.verdict.end;
  if (end.pid == 0) return out;
  // Devices come first in a View.
  const auto processes =
      std::partition_point(view.series.begin(), view.series.end(), [](const SeriesView& s) { return s.key.pid == 0; });
  const auto last = series.key.pid == 0 ? view.series.end() : processes;
  for (auto other = series.key.pid == 0 ? processes : view.series.begin(); other != last; ++other) {
    const auto& its = other->verdict.end;
    if (its && its->pid == end.pid && its->pid_start_ticks == end.pid_start_ticks &&
        device_key(other->key) == device_key(series.key))
      out.push_back(&*other);
  }
  return out;
}

bool is_of_ended_run(const SeriesView& series) {
  return !grows(series.verdict.finding) && leak_at_end(series) != nullptr;
}

Conclusion::Conclusion(const View& view, const SeriesView& series)
    : series_(series), is_of_ended_run_(vramtrack::is_of_ended_run(series)) {
  if (is_of_ended_run_) own_ = verdict_of_run(view, series, *leak_at_end(series));
  const auto onset = finding().onset;
  if (!onset) return;
  const Timestamp first = first_onset(view, series, *onset);
  if (first == *onset) return;
  if (!own_) own_ = series.verdict;
  own_->finding.onset = first;
}

bool has_leaked(const SeriesView& series) {
  return std::any_of(series.alerts.begin(), series.alerts.end(), shows_leak) ||
         std::any_of(series.suspicions.begin(), series.suspicions.end(), shows_leak);
}

bool has_leaked(const View& view) {
  return std::any_of(view.series.begin(), view.series.end(), [](const SeriesView& s) { return has_leaked(s); });
}

}  // namespace vramtrack
