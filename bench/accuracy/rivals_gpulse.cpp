// gpulse's LinearTrend, Spike and Composite, from its documentation (it is closed source). The documents give the
// thresholds, not the formula of `confidence`; so there are two readings of each: as vramtrack's detectors of these
// names implement the documents, confidence included, and the bare rule.
#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>

#include "detect/detector.hpp"
#include "detect/period.hpp"
#include "rivals_parts.hpp"

namespace vramtrack::accuracy {
namespace {

/// The documents' configuration in full, whatever vramtrack's own defaults are.
DetectionConfig documented() {
  DetectionConfig config;
  config.min_r_squared = 0.8;
  config.min_slope_mb_per_sec = 1.0;
  config.confidence_threshold = 0.75;
  config.minimum_samples = 20;
  config.minimum_duration_minutes = 5;
  config.analysis_window_hours = 1;
  config.spike_percent = 20;
  config.spike_window_seconds = 30;
  return config;
}

DetectionConfig with(double min_slope_mb_per_sec, double confidence_threshold) {
  DetectionConfig config = documented();
  config.min_slope_mb_per_sec = min_slope_mb_per_sec;
  config.confidence_threshold = confidence_threshold;
  return config;
}

/// A detector of vramtrack's.
class Wrapped final : public Rival {
 public:
  Wrapped(std::string_view name, const DetectionConfig& config, double capacity_bytes)
      : detector_(find_detector(name)->make(config, kSecondsAndBytes)) {
    detector_->set_limit(capacity_bytes);
  }
  void observe(double t_s, double used_bytes) override { detector_->observe(Timestamp{from_seconds(t_s)}, used_bytes); }
  [[nodiscard]] bool alarming() const override { return detector_->alerting(); }
  [[nodiscard]] std::optional<double> oom_in_s() const override {
    if (!detector_->alerting()) return std::nullopt;
    const Finding finding = detector_->finding();
    if (!finding.oom_in_s) return std::nullopt;
    return finding.oom_in_s->mid;
  }

 private:
  std::unique_ptr<Detector> detector_;
};

/// The bare SpikeDetector: "compares memory usage at the start and end of a configurable window. If the increase
/// exceeds the spike percentage threshold, it fires." The window is one sampling period where that is longer; nothing
/// is compared across a gap.
class BareSpike final : public Rival {
 public:
  void observe(double t_s, double used_bytes) override {
    if (!window_.empty()) {
      if (t_s == window_.back().t_s)
        window_.pop_back();
      else
        learn_period(t_s - window_.back().t_s);
    }
    // At most kEntries in the window at any rate: of samples closer together the latest stays.
    while (window_.size() >= 2 && t_s - window_[window_.size() - 2].t_s < kSeconds / kEntries) window_.pop_back();
    window_.push_back({t_s, used_bytes});
    while (t_s - window_.front().t_s > length_s_) window_.pop_front();
    const double start_bytes = window_.front().y;
    alarming_ = start_bytes > 0 && used_bytes - start_bytes > 0.2 * start_bytes;
  }
  [[nodiscard]] bool alarming() const override { return alarming_; }

 private:
  void learn_period(double dt_s) {
    period_.observe(dt_s);
    if (++since_learnt_ < 16 && period_.count() >= 16) return;
    since_learnt_ = 0;
    length_s_ = std::max(kSeconds * 1.05, period_.median_s() * 1.25);  // a little more, for jitter
  }

  static constexpr double kSeconds = 30;
  static constexpr double kEntries = 128;

  std::deque<Reading> window_;
  PeriodEstimate period_;
  int since_learnt_ = 0;
  double length_s_ = kSeconds * 1.05;
  bool alarming_ = false;
};

class Either final : public Rival {
 public:
  Either(std::unique_ptr<Rival> trend, std::unique_ptr<Rival> spike)
      : trend_(std::move(trend)), spike_(std::move(spike)) {}
  void observe(double t_s, double used_bytes) override {
    trend_->observe(t_s, used_bytes);
    spike_->observe(t_s, used_bytes);
  }
  [[nodiscard]] bool alarming() const override { return trend_->alarming() || spike_->alarming(); }
  [[nodiscard]] std::optional<double> oom_in_s() const override { return trend_->oom_in_s(); }

 private:
  std::unique_ptr<Rival> trend_;
  std::unique_ptr<Rival> spike_;
};

}  // namespace

std::unique_ptr<Rival> make_gpulse_linear(double capacity_bytes) {
  return std::make_unique<Wrapped>("linear_trend", documented(), capacity_bytes);
}

std::unique_ptr<Rival> make_gpulse_linear_low(double capacity_bytes) {
  return std::make_unique<Wrapped>("linear_trend", with(0.01, 0.75), capacity_bytes);
}

std::unique_ptr<Rival> make_gpulse_linear_bare(double capacity_bytes) {
  return std::make_unique<Wrapped>("linear_trend", with(1.0, 0), capacity_bytes);
}

std::unique_ptr<Rival> make_gpulse_linear_bare_low(double capacity_bytes) {
  return std::make_unique<Wrapped>("linear_trend", with(0.01, 0), capacity_bytes);
}

std::unique_ptr<Rival> make_gpulse_spike(double /*capacity_bytes*/) {
  return std::make_unique<BareSpike>();
}

std::unique_ptr<Rival> make_gpulse_spike_followed(double capacity_bytes) {
  return std::make_unique<Wrapped>("spike", documented(), capacity_bytes);
}

std::unique_ptr<Rival> make_gpulse_composite(double capacity_bytes) {
  return std::make_unique<Either>(make_gpulse_linear(capacity_bytes), make_gpulse_spike(capacity_bytes));
}

std::unique_ptr<Rival> make_gpulse_composite_followed(double capacity_bytes) {
  return std::make_unique<Wrapped>("composite", documented(), capacity_bytes);
}

}  // namespace vramtrack::accuracy
