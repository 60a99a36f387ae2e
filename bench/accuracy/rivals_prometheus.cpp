// Prometheus' alerting rules: predict_linear() and deriv() over an hour, and the static threshold. The functions as
// prometheus/promql/functions.go has them: least squares over the samples of the range (t - range, t], at least two of
// them, and the prediction from the line's value at the evaluation, not from the last sample.
#include "rivals_range.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kRangeSeconds = 3600;
constexpr double kHorizonSeconds = 4 * 3600;

class PredictLinear final : public RangeRule {
 public:
  PredictLinear(double capacity_bytes, double for_s)
      : RangeRule(kRangeSeconds, for_s), capacity_bytes_(capacity_bytes) {}

 private:
  [[nodiscard]] bool holds(const Fit& fit, double /*used_bytes*/) const override {
    return fit.at(kHorizonSeconds) > capacity_bytes_;
  }
  [[nodiscard]] std::optional<double> oom_after_s(const Fit& fit) const override {
    if (fit.slope_per_s <= 0) return std::nullopt;
    return (capacity_bytes_ - fit.at(0)) / fit.slope_per_s;
  }

  const double capacity_bytes_;
};

class Deriv final : public RangeRule {
 public:
  Deriv(double min_bytes_per_s, double for_s) : RangeRule(kRangeSeconds, for_s), min_bytes_per_s_(min_bytes_per_s) {}

 private:
  [[nodiscard]] bool holds(const Fit& fit, double /*used_bytes*/) const override {
    return fit.slope_per_s > min_bytes_per_s_;
  }

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
