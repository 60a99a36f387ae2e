// Prometheus' functions over a range: what rivals_prometheus.cpp and rivals_published.cpp share.
#pragma once

#include <deque>

#include "detect/regression.hpp"
#include "rivals_parts.hpp"

namespace vramtrack::accuracy {

inline constexpr double kScrapeSeconds = 15;
/// A rule over used[`range_s`] that must hold for `for_s`; memory is a scrape each 15 s.
class RangeRule : public Polled {
 public:
  RangeRule(double range_s, double for_s) : range_s_(range_s), for_s_(for_s) {}

 protected:
  /// Whether the expression holds, from the line through the range; its times are seconds since the evaluation.
  [[nodiscard]] virtual bool holds(const Fit& fit, double used_bytes) const = 0;
  /// Seconds from the evaluation to the end of memory, where the expression tells.
  [[nodiscard]] virtual std::optional<double> oom_after_s(const Fit&) const { return std::nullopt; }

 private:
  void take(double t_s, double used_bytes, bool replaces) final {
    if (replaces && scrapes_.back().t_s == t_s) {
      scrapes_.back().y = used_bytes;
      return;
    }
    if (!scrapes_.empty() && slot_of(t_s, kScrapeSeconds) <= slot_of(scrapes_.back().t_s, kScrapeSeconds)) return;
    scrapes_.push_back({t_s, used_bytes});
    while (scrapes_.front().t_s <= t_s - range_s_) scrapes_.pop_front();
  }

  Alarm evaluate(double t_s, double used_bytes, const Alarm& before) final {
    // With fewer than two samples the functions give nothing: the rule then rests, as it does in a long gap.
    if (scrapes_.size() < 2) return {};
    Moments moments;
    for (const Reading& scrape : scrapes_) moments.add(scrape.t_s - t_s, scrape.y);
    const Fit fit = fit_slope(moments);
    if (!holds(fit, used_bytes)) return {};
    Alarm alarm;
    alarm.true_since_s = before.true_since_s.value_or(t_s);
    alarm.on = t_s - *alarm.true_since_s >= for_s_;
    if (const std::optional<double> after_s = oom_after_s(fit)) alarm.full_at_s = t_s + *after_s;
    return alarm;
  }

  const double range_s_;
  const double for_s_;
  std::deque<Reading> scrapes_;
};

}  // namespace vramtrack::accuracy
