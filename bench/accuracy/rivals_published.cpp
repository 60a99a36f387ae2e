// Alerting rules as collections of them publish them, for GPUs and for what else fills up.
#include <algorithm>
#include <deque>

#include "rivals_range.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kHour_s = 3600;

/// predict_linear(used[range], horizon) > capacity, and this much is already used.
class FillingUp final : public RangeRule {
 public:
  struct Rule {
    double range_s;
    double horizon_s;
    double for_s;
    double used_share;
  };
  FillingUp(double capacity_bytes, const Rule& rule)
      : RangeRule(rule.range_s, rule.for_s), capacity_bytes_(capacity_bytes), rule_(rule) {}

 private:
  [[nodiscard]] bool holds(const Fit& fit, double used_bytes) const override {
    return used_bytes > rule_.used_share * capacity_bytes_ && fit.at(rule_.horizon_s) > capacity_bytes_;
  }
  [[nodiscard]] std::optional<double> oom_after_s(const Fit& fit) const override {
    if (fit.slope_per_s <= 0) return std::nullopt;
    return (capacity_bytes_ - fit.at(0)) / fit.slope_per_s;
  }

  const double capacity_bytes_;
  const Rule rule_;
};

/// deriv(used[1h]) > a rate.
class Rising final : public RangeRule {
 public:
  Rising(double bytes_per_s, double for_s) : RangeRule(kHour_s, for_s), bytes_per_s_(bytes_per_s) {}

 private:
  [[nodiscard]] bool holds(const Fit& fit, double /*used_bytes*/) const override {
    return fit.slope_per_s > bytes_per_s_;
  }

  const double bytes_per_s_;
};

/// The highest value of the last `window_s` is above a limit, for a while.
class Above final : public Polled {
 public:
  Above(double limit_bytes, double window_s, double for_s)
      : limit_bytes_(limit_bytes), window_s_(window_s), for_s_(for_s) {}

 private:
  void take(double t_s, double used_bytes, bool replaces) override {
    if (replaces) readings_.pop_back();
    readings_.push_back({t_s, used_bytes});
    while (readings_.size() > 1 && readings_.front().t_s <= t_s - window_s_) readings_.pop_front();
  }
  Alarm evaluate(double t_s, double /*used_bytes*/, const Alarm& before) override {
    const bool above = std::any_of(readings_.begin(), readings_.end(),
                                   [this](const Reading& reading) { return reading.y > limit_bytes_; });
    if (!above) return {};
    Alarm alarm;
    alarm.true_since_s = before.true_since_s.value_or(t_s);
    alarm.on = t_s - *alarm.true_since_s >= for_s_;
    return alarm;
  }

  const double limit_bytes_;
  const double window_s_;
  const double for_s_;
  std::deque<Reading> readings_;
};

}  // namespace

std::unique_ptr<Rival> make_node_mixin_warning(double capacity_bytes) {
  return std::make_unique<FillingUp>(capacity_bytes, FillingUp::Rule{6 * kHour_s, 24 * kHour_s, kHour_s, 0.6});
}
std::unique_ptr<Rival> make_node_mixin_critical(double capacity_bytes) {
  return std::make_unique<FillingUp>(capacity_bytes, FillingUp::Rule{6 * kHour_s, 4 * kHour_s, kHour_s, 0.8});
}
std::unique_ptr<Rival> make_kubernetes_mixin(double capacity_bytes) {
  return std::make_unique<FillingUp>(capacity_bytes, FillingUp::Rule{6 * kHour_s, 96 * kHour_s, 300, 0.85});
}
std::unique_ptr<Rival> make_gpu_leak_1h(double capacity_bytes) {
  return std::make_unique<FillingUp>(capacity_bytes, FillingUp::Rule{kHour_s, kHour_s, 900, 0});
}
std::unique_ptr<Rival> make_gpu_oom_30m(double capacity_bytes) {
  return std::make_unique<FillingUp>(capacity_bytes, FillingUp::Rule{kHour_s / 2, kHour_s / 2, 0, 0});
}
// The metric is in MiB, and deriv() is per second: the rule is kept as it is written.
std::unique_ptr<Rival> make_gpu_leak_deriv(double /*capacity_bytes*/) {
  return std::make_unique<Rising>(100 * kMiB, 2 * kHour_s);
}
// Three evaluations in a row, a minute apart.
std::unique_ptr<Rival> make_elastic_90(double capacity_bytes) {
  return std::make_unique<Above>(0.9 * capacity_bytes, 300, 120);
}
std::unique_ptr<Rival> make_gpu_85_for5m(double capacity_bytes) {
  return std::make_unique<Above>(0.85 * capacity_bytes, 0, 300);
}
std::unique_ptr<Rival> make_gpu_95_for2m(double capacity_bytes) {
  return std::make_unique<Above>(0.95 * capacity_bytes, 0, 120);
}
std::unique_ptr<Rival> make_hami_90_for10m(double capacity_bytes) {
  return std::make_unique<Above>(0.9 * capacity_bytes, 0, 600);
}
std::unique_ptr<Rival> make_vllm_98_for10m(double capacity_bytes) {
  return std::make_unique<Above>(0.98 * capacity_bytes, 0, 600);
}

}  // namespace vramtrack::accuracy
