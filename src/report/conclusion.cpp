#include "report/conclusion.hpp"

#include <algorithm>

namespace vramtrack {
namespace {

Verdict verdict_of_run(const SeriesView& series, const Alert& alert) {
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
  out.dissent.clear();  // it is about what came after
  return out;
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

Conclusion::Conclusion(const SeriesView& series)
    : series_(series),
      leaked_(std::any_of(series.alerts.begin(), series.alerts.end(), shows_leak) ||
              std::any_of(series.suspicions.begin(), series.suspicions.end(), shows_leak)) {
  const Finding& f = series.verdict.finding;
  if (f.leak || f.state != State::too_short) return;
  if (const Alert* leak = leak_at_end(series)) of_run_ = verdict_of_run(series, *leak);
}

bool has_leaked(const View& view) {
  return std::any_of(view.series.begin(), view.series.end(),
                     [](const SeriesView& s) { return Conclusion(s).leaked(); });
}

}  // namespace vramtrack
