#include "metrics.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>

#include "core/config.hpp"
#include "core/units.hpp"
#include "engine/paging.hpp"

namespace vramtrack::accuracy {
namespace {

/// By the rule of engine/paging.hpp, and by its setting as it is.
bool is_due(double onset_s, double life_s, double end_s) {
  const double lead_s = needed_s(DetectionConfig{}.lead_time_minutes * kSecondsPerMinute, life_s, 0);
  return onset_s + life_s - lead_s <= end_s;
}

double f1_of(double precision, double recall) {
  return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

}  // namespace

Scored score(const Trace& trace, const Played& played, const Outcome& outcome) {
  Scored s;
  s.trace = &trace;
  const double onset = trace.label.onset_s;
  s.healthy_s = healthy_until_s(trace, played);
  s.false_episodes = outcome.false_elsewhere;
  double last_end = -1e18;
  for (const Alarm& alarm : outcome.alarms) {
    const bool healthy = !trace.label.leak || alarm.raised_s < onset;
    if (healthy && alarm.raised_s > last_end + 3600) ++s.false_episodes;
    last_end = alarm.cleared_s;
    if (!trace.label.leak || alarm.cleared_s <= onset || s.detected) continue;
    if (played.oom_s && alarm.raised_s > *played.oom_s) continue;  // the next life
    s.detected = true;
    s.delay_s = std::max(0.0, alarm.raised_s - onset);
  }
  if (!trace.label.leak) return s;
  s.slow = !s.detected && outcome.slow_growth;
  s.life_s = played.oom_s ? *played.oom_s - onset : std::max(trace.label.life_s, played.end_s - onset);
  s.due = is_due(onset, s.life_s, played.end_s);
  s.before_half = s.detected && s.delay_s <= 0.5 * s.life_s;
  const double period_s = played.points.size() < 2 ? 1 : played.end_s / static_cast<double>(played.points.size());
  s.limit_s = std::max({0.05 * s.life_s, 300.0, 20 * period_s});
  return s;
}

Scored score(const Trace& trace, const Played& played, Mark mark) {
  if (mark == Mark::paged) return score(trace, played, played.ours);
  Outcome outcome;
  outcome.alarms = mark == Mark::told ? played.ours.told : played.ours.suspicions;
  outcome.false_elsewhere = mark == Mark::told ? played.ours.told_elsewhere : 0;
  outcome.slow_growth = played.ours.slow_growth;
  return score(trace, played, outcome);
}

Interval poisson_rate(int count, double days) {
  using boost::math::chi_squared;
  using boost::math::quantile;
  if (!(days > 0)) return {};
  const double low = count == 0 ? 0 : 0.5 * quantile(chi_squared(2.0 * count), 0.025);
  const double high = 0.5 * quantile(chi_squared(2.0 * count + 2), 0.975);
  return {low / days, count / days, high / days};
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

double Summary::recall() const {
  return leaks == 0 ? std::nan("") : static_cast<double>(detected) / leaks;
}

double Summary::false_rate() const {
  return healthy == 0 ? std::nan("") : static_cast<double>(alarmed) / healthy;
}

double Summary::precision(double healthy_per_leak) const {
  const double wrong = healthy_per_leak * false_rate();
  return recall() + wrong > 0 ? recall() / (recall() + wrong) : std::nan("");
}

double Summary::due_recall() const {
  return due == 0 ? std::nan("") : static_cast<double>(due_detected) / due;
}

double Summary::f1() const {
  return f1_of(precision(1), recall());
}

double Summary::due_f1() const {
  return f1_of(due_recall() / (due_recall() + false_rate()), due_recall());
}

Summary summarise(const std::vector<Scored>& scored) {
  Summary sum;
  for (const Scored& s : scored) {
    sum.healthy_days += s.healthy_s / 86400;
    sum.episodes += s.false_episodes;
    if (!s.trace->label.leak) {
      ++sum.healthy;
      sum.alarmed += s.false_episodes > 0 ? 1 : 0;
      continue;
    }
    ++sum.leaks;
    sum.due += s.due ? 1 : 0;
    sum.due_detected += s.due && s.detected ? 1 : 0;
    // More than 1 % of the capacity an hour, by the growth where it is steady, else by the life.
    const double capacity = s.trace->capacity_bytes;
    const double rate = s.trace->label.growth_bytes_per_s.value_or(0.4 * capacity / s.life_s);
    const bool fast = rate * 3600 > 0.01 * capacity;
    sum.fast += fast ? 1 : 0;
    sum.late += fast && !s.before_half ? 1 : 0;
    sum.slow += s.slow ? 1 : 0;
    if (!s.detected) continue;
    ++sum.detected;
    sum.delay_s.push_back(s.delay_s);
    sum.delay_share.push_back(s.delay_s / s.life_s);
    sum.delay_over_limit.push_back(s.delay_s / s.limit_s);
  }
  return sum;
}

}  // namespace vramtrack::accuracy
