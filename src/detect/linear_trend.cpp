#include "detect/linear_trend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/statistics.hpp"
#include "core/units.hpp"
#include "detect/alerting_detector.hpp"

namespace vramtrack {

extern const DetectorInfo linear_trend_detector;

namespace {

/// An active alert whose line still holds is judged again at one sample in this many of the window, four times less
/// often than it is checked: this can only end it a little later.
constexpr double kJudgeOneIn = 16;
/// A rise that is not yet confirmed is called growing if its p is below this, and a fall a fall if p is above 1 - this.
constexpr double kSignificant = 0.05;
constexpr double kSignificantFall = 0.95;
/// An alert that ends with less than this share of the growth left ended because the memory was released.
constexpr double kReleasedShare = 0.5;

class LinearTrend final : public AlertingDetector {
 public:
  LinearTrend(const DetectionConfig& config, const Scale& figures)
      : AlertingDetector(figures),
        config_(config),
        min_slope_(config.min_slope_mb_per_sec * kMiB),
        min_duration_s_(config.minimum_duration_minutes * kSecondsPerMinute),
        window_(config.analysis_window_hours * kSecondsPerHour) {}

  void observe(Timestamp time, double used_bytes) override {
    if (window_.empty() || time > window_.last()) ++seen_;
    window_.observe(time, used_bytes);
    // A replaced value is examined in the same way as the first.
    const std::uint64_t unseen = seen_ - looked_;
    const bool due = unseen == 0 || static_cast<double>(unseen) * kLookOneIn >= window_.samples();
    if (!due && (was_enough_ || !enough())) return;
    looked_ = seen_;
    evaluate();
  }

  [[nodiscard]] Finding finding() const override {
    Finding finding;
    finding.detector = linear_trend_detector.name;
    if (!enough()) {
      finding.because = too_short_words();
      return finding;
    }
    const Trend trend = judge_trend(window_, config_.min_r_squared, min_slope_);
    const Fit& fit = trend.fit;
    finding.leak = alerting_;
    finding.stage = alerting_ ? Stage::confirmed : Stage::none;
    finding.confidence = trend.confidence;
    finding.growth_bytes_per_s = slope_interval(fit);
    finding.r_squared = fit.r_squared;
    finding.because = trend_words(trend, window_, figures_);
    const bool line = fit.r_squared >= config_.min_r_squared;
    if (alerting_) {
      finding.state = State::leaking;
      finding.pattern = Pattern::gradual_leak;
      finding.onset = window_.first();
      if (limit_ && fit.slope_per_s > 0) finding.oom_in_s = time_to(fit, window_.last_value(), *limit_);
    } else if (line && is_growth(fit.p_value, kSignificant, fit.slope_per_s, 0)) {
      finding.state = State::growing;
      finding.onset = window_.first();
      finding.because += "; " + missed(trend, 1).value_or("not yet confirmed");
    } else {
      const bool falls = line && fit.slope_per_s < 0 && fit.p_value > kSignificantFall;
      finding.state = falls ? State::falling : State::steady;
      if (!falls) finding.because += "; " + missed(trend, 1).value_or("no significant trend");
    }
    return finding;
  }

  [[nodiscard]] std::vector<std::string> explain() const override {
    std::vector<std::string> lines;
    const auto gate = [&lines](std::string_view name, double value, double needed, std::string_view unit) {
      lines.push_back(fmt::format("linear_trend: {} {:.4g} {}, needs {:.4g}: {}", name, value, unit, needed,
                                  value >= needed ? "passes" : "misses"));
    };
    gate("samples", window_.samples(), static_cast<double>(config_.minimum_samples), "in the window");
    gate("duration", window_.span_s(), min_duration_s_, "s");
    if (window_.empty()) return lines;
    const Trend trend = judge_trend(window_, config_.min_r_squared, min_slope_);
    const Scale::AxisUnit unit = figures_.axis_unit(0);
    gate("slope", trend.fit.slope_per_s / unit.bytes, min_slope_ / unit.bytes, fmt::format("{}/s", unit.name));
    gate("R2", trend.fit.r_squared, config_.min_r_squared, "");
    gate("confidence", trend.confidence, config_.confidence_threshold, "");
    lines.push_back(fmt::format(
        "linear_trend: p {:.3g}, residuals' autocorrelation {:.2f}, {:.0f} independent samples, latest third at {:.2f} "
        "of the slope",
        trend.fit.p_value, trend.fit.autocorrelation, trend.fit.effective_n, trend.recent_share));
    return lines;
  }

 private:
  [[nodiscard]] bool enough() const {
    return window_.samples() >= static_cast<double>(config_.minimum_samples) && window_.span_s() >= min_duration_s_;
  }

  [[nodiscard]] std::string too_short_words() const {
    return fmt::format("{:.0f} sample{} over {}: at least {} over {} are needed", window_.samples(),
                       window_.samples() == 1 ? "" : "s", figures_.span(window_.span_s()), config_.minimum_samples,
                       figures_.span(min_duration_s_));
  }

  /// The first threshold that `trend` misses, in words. `ease`: the share of each threshold that suffices.
  [[nodiscard]] std::optional<std::string> missed(const Trend& trend, double ease) const {
    if (trend.fit.slope_per_s < ease * min_slope_ || trend.fit.slope_per_s <= 0)
      return fmt::format("below the minimum slope of {}", figures_.scaled_rate(min_slope_));
    if (trend.fit.r_squared < ease * config_.min_r_squared)
      return fmt::format("R2 below {:.2f}", config_.min_r_squared);
    if (trend.confidence < ease * config_.confidence_threshold)
      return fmt::format("confidence {:.2f} below {:.2f}", trend.confidence, config_.confidence_threshold);
    return std::nullopt;
  }

  void evaluate() {
    was_enough_ = enough();
    if (!was_enough_) {
      if (alerting_) end("too few samples since a gap");
      return;
    }
    // Most series never get past this point: it costs two merges and no significance test.
    const double ease = alerting_ ? kHysteresis : 1;
    const Fit fit = fit_slope(window_.all());
    const bool line =
        fit.slope_per_s > 0 && fit.slope_per_s >= ease * min_slope_ && fit.r_squared >= ease * config_.min_r_squared;
    if (!line && !alerting_) return;
    highest_bytes_ = std::max(highest_bytes_, window_.last_value());
    if (alerting_ && line && static_cast<double>(seen_ - judged_) * kJudgeOneIn < window_.samples()) return;
    judged_ = seen_;
    const Trend trend = judge_trend(window_, config_.min_r_squared, min_slope_);
    const std::optional<std::string> reason = missed(trend, ease);
    if (!alerting_ && !reason) {
      alerting_ = true;
      raised_bytes_ = trend.fit.at(window_.at(window_.first()));
      highest_bytes_ = window_.last_value();
    }
    if (alerting_ && reason) end(*reason);
  }

  void end(const std::string& reason) {
    alerting_ = false;
    const double left = window_.last_value() - raised_bytes_;
    const double grown = highest_bytes_ - raised_bytes_;
    const bool released = left < kReleasedShare * grown;
    last_end_ = released ? AlertEnd::released : AlertEnd::withdrawn;
    last_end_reason_ = released ? fmt::format("{} of the {} of growth was released", figures_.bytes(grown - left),
                                              figures_.bytes(grown))
                                : reason;
  }

  const DetectionConfig config_;
  const double min_slope_;
  const double min_duration_s_;
  TrendWindow window_;
  std::uint64_t seen_ = 0;    ///< samples; a replaced one counts once
  std::uint64_t looked_ = 0;  ///< the sample at which the line was last checked
  std::uint64_t judged_ = 0;  ///< the sample at which it last tested the significance
  bool was_enough_ = false;
  double raised_bytes_ = 0;   ///< the line at the window's start when the alert was raised
  double highest_bytes_ = 0;  ///< highest value since then
};

}  // namespace

Trend judge_trend(const TrendWindow& window, double min_r_squared, double min_slope_bytes_per_s) {
  Trend trend;
  trend.fit = fit_line(window.all());
  const Fit& fit = trend.fit;
  if (fit.slope_per_s <= 0) return trend;
  trend.recent_share = std::clamp(fit_slope(window.recent()).slope_per_s / fit.slope_per_s, 0.0, 1.0);
  const auto reaches = [](double value, double needed) { return needed > 0 ? std::min(value / needed, 1.0) : 1.0; };
  trend.confidence = (1 - fit.p_value) * std::sqrt(fit.r_squared) * reaches(fit.r_squared, min_r_squared) *
                     reaches(fit.slope_per_s, min_slope_bytes_per_s) * (1 + trend.recent_share) / 2;
  return trend;
}

std::string trend_words(const Trend& trend, const TrendWindow& window, const Scale& figures) {
  return fmt::format("slope {}, R2 {:.2f} over {}, {:.0f} samples", figures.scaled_rate(trend.fit.slope_per_s),
                     trend.fit.r_squared, figures.span(window.span_s()), window.samples());
}

std::unique_ptr<Detector> make_linear_trend(const DetectionConfig& config, const Scale& figures) {
  return std::make_unique<LinearTrend>(config, figures);
}

const DetectorInfo linear_trend_detector{
    "linear_trend",
    "least squares over one window: slope and R2 above thresholds (the rule documented as LinearTrendDetector)",
    make_linear_trend};

}  // namespace vramtrack
