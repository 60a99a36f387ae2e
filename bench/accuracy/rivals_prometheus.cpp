// Prometheus' alerting rules: predict_linear() and deriv() over an hour, and the static threshold. The functions as
// prometheus/promql/functions.go has them: least squares over the samples of the range (t - range, t], at least two of
// them, and the prediction from the line's value at the evaluation, not from the last sample.
#include <deque>

#include "detect/regression.hpp"
#include "rivals_parts.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kScrapeSeconds = 15;
constexpr double kRangeSeconds = 3600;
constexpr double kHorizonSeconds = 4 * 3600;

/// A rule over used[1h]; memory is 240 scrapes.
class HourRule : public Polled {
 public:
  explicit HourRule(double for_s) : for_s_(for_s) {}

 protected:
  /// Whether the expression holds, from the line through the range; its times are seconds since the evaluation.
  [[nodiscard]] virtual bool holds(const Fit& fit) const = 0;
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
    while (scrapes_.front().t_s <= t_s - kRangeSeconds) scrapes_.pop_front();
  }

  Alarm evaluate(double t_s, double /*used_bytes*/, const Alarm& before) final {
    // With fewer than two samples the functions give nothing: the rule then rests, as it does in a gap of an hour.
    if (scrapes_.size() < 2) return {};
    Moments moments;
    for (const Reading& scrape : scrapes_) moments.add(scrape.t_s - t_s, scrape.y);
    const Fit fit = fit_slope(moments);
    if (!holds(fit)) return {};
    Alarm alarm;
    alarm.true_since_s = before.true_since_s.value_or(t_s);
    alarm.on = t_s - *alarm.true_since_s >= for_s_;
    if (const std::optional<double> after_s = oom_after_s(fit)) alarm.full_at_s = t_s + *after_s;
    return alarm;
  }

  const double for_s_;
  std::deque<Reading> scrapes_;
};

class PredictLinear final : public HourRule {
 public:
  PredictLinear(double capacity_bytes, double for_s) : HourRule(for_s), capacity_bytes_(capacity_bytes) {}

 private:
  [[nodiscard]] bool holds(const Fit& fit) const override { return fit.at(kHorizonSeconds) > capacity_bytes_; }
  [[nodiscard]] std::optional<double> oom_after_s(const Fit& fit) const override {
    if (fit.slope_per_s <= 0) return std::nullopt;
    return (capacity_bytes_ - fit.at(0)) / fit.slope_per_s;
  }

  const double capacity_bytes_;
};

class Deriv final : public HourRule {
 public:
  Deriv(double min_bytes_per_s, double for_s) : HourRule(for_s), min_bytes_per_s_(min_bytes_per_s) {}

 private:
  [[nodiscard]] bool holds(const Fit& fit) const override { return fit.slope_per_s > min_bytes_per_s_; }

  const double min_bytes_per_s_;
};

class StaticThreshold final : public Rival {
 public:
  explicit StaticThreshold(double limit_bytes) : limit_bytes_(limit_bytes) {}
  void observe(double /*t_s*/, double used_bytes) override { alarming_ = used_bytes > limit_bytes_; }
  [[nodiscard]] bool alarming() const override { return alarming_; }

 private:
  const double limit_bytes_;
  bool alarming_ = false;
};

}  // namespace

std::unique_ptr<Rival> make_predict_linear(double capacity_bytes) {
  return std::make_unique<PredictLinear>(capacity_bytes, 0);
}

std::unique_ptr<Rival> make_predict_linear_for10m(double capacity_bytes) {
  return std::make_unique<PredictLinear>(capacity_bytes, 600);
}

// No rule for deriv() is standard. About a million bytes a second (1048576, 1e6) is the constant that recurs in
// published rules over an hour; the comment beside it often reads "1 MB/hour", but deriv() is per second.
std::unique_ptr<Rival> make_deriv_for10m(double /*capacity_bytes*/) {
  return std::make_unique<Deriv>(kMiB, 600);
}

// What such comments mean where they say "10 MB/hour", and the threshold of Coroot 0.11.
std::unique_ptr<Rival> make_deriv_low_for10m(double /*capacity_bytes*/) {
  return std::make_unique<Deriv>(10 * kMiB / 3600, 600);
}

std::unique_ptr<Rival> make_static_90(double capacity_bytes) {
  return std::make_unique<StaticThreshold>(0.9 * capacity_bytes);
}

}  // namespace vramtrack::accuracy
