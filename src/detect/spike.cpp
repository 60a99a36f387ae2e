#include "detect/spike.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "detect/alerting_detector.hpp"
#include "detect/linear_trend.hpp"
#include "detect/period.hpp"
#include "detect/ring.hpp"
#include "detect/trend_window.hpp"

namespace vramtrack {

extern const DetectorInfo spike_detector;

namespace {

/// Below this share of the capacity, a rise is measured against the capacity: 20 % of nothing is nothing.
constexpr double kLowShare = 0.05;
/// A spike of which at most this share is left is gone again.
constexpr double kGoneShare = 0.2;
/// After the spike, growth below this share of it does not count as "still growing".
constexpr double kGrowthShare = 0.1;
/// Confidence while its outcome is undecided, and once it has stabilised.
constexpr double kUndecided = 0.25;
constexpr double kStabilised = 0.05;
/// A rise within this many windows of the spike's beginning belongs to it.
constexpr double kSameRampWindows = 2;
/// The short window reaches back a little further than its length, for jitter.
constexpr double kJitter = 1.05;
/// The sampling period is queried again after this many samples; until then, at each sample.
constexpr std::size_t kPeriodEvery = 16;

/// The samples of the last W seconds, the latest one in each 1/64 of W: bounded at any sampling rate.
class ShortWindow {
 public:
  struct Entry {
    Timestamp time{};
    double bytes = 0;
  };

  void set_length(double window_s) {
    step_ = from_seconds(window_s / kSteps);
    length_ = from_seconds(window_s * kJitter);
  }

  void observe(Timestamp time, double bytes) {
    // Two entries in one step become one; the last but one is kept, so that the steps do not drift.
    if (entries_.size() >= 2 && time - entries_[entries_.size() - 2].time < step_) entries_.pop_back();
    if (!entries_.empty() && entries_.back().time == time) entries_.pop_back();
    if (entries_.full()) entries_.pop_front();
    entries_.push_back({time, bytes});
    while (entries_.size() > 1 && time - entries_.front().time > length_) entries_.pop_front();
  }
  /// The window's start: its oldest sample.
  [[nodiscard]] const Entry& start() const { return entries_.front(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  static constexpr std::size_t kSteps = 64;

  Ring<Entry, 2 * kSteps> entries_;  ///< the steps, and what jitter and the additional last ones add
  Duration step_{};
  Duration length_{};
};

class Spike final : public AlertingDetector {
 public:
  Spike(const DetectionConfig& config, const Scale& figures)
      : AlertingDetector(figures),
        config_(config),
        share_(config.spike_percent / 100),
        stable_after_s_(config.minimum_duration_minutes * kSecondsPerMinute),
        forget_s_(config.analysis_window_hours * kSecondsPerHour),
        after_(config.analysis_window_hours * kSecondsPerHour) {
    refresh_window();
  }

  void observe(Timestamp time, double used_bytes) override {
    if (samples_ == 0) first_time_ = time;
    if (samples_ > 0 && time > last_time_) {
      period_.observe(seconds_between(last_time_, time));
      if (++since_period_ >= kPeriodEvery || period_.count() < kPeriodEvery) refresh_window();
    }
    if (samples_ == 0 || time > last_time_) ++samples_;
    last_time_ = time;
    last_bytes_ = used_bytes;
    window_.observe(time, used_bytes);
    if (spike_) follow();
    if (rising()) begin_or_extend();
  }

  [[nodiscard]] Finding finding() const override {
    Finding finding;
    finding.detector = spike_detector.name;
    const double span_s = samples_ > 0 ? seconds_between(first_time_, last_time_) : 0;
    if (!spike_) {
      finding.state = window_.size() >= 2 && span_s >= window_s_ ? State::steady : State::too_short;
      finding.because = finding.state == State::steady ? fmt::format("no rise of {:.0f} % within {}",
                                                                     config_.spike_percent, figures_.span(window_s_))
                                                       : fmt::format("the samples cover {}: at least {} is needed",
                                                                     figures_.span(span_s), figures_.span(window_s_));
      return finding;
    }
    finding.pattern = Pattern::sudden_spike;
    finding.state = State::spiked;
    finding.spike = spike_->outcome;
    finding.onset = spike_->from;
    finding.because = fmt::format("up {} ({}) within {}", figures_.bytes(spike_->top_bytes - spike_->from_bytes),
                                  percent_words(), figures_.span(seconds_between(spike_->from, spike_->top)));
    if (spike_->outcome == SpikeOutcome::none) {
      finding.confidence = kUndecided;
      finding.because += fmt::format("; whether it stabilises is known after {}", figures_.span(stable_after_s_));
      return finding;
    }
    const Trend trend = judge_trend(after_, config_.min_r_squared, 0);
    finding.r_squared = trend.fit.r_squared;
    finding.growth_bytes_per_s = slope_interval(trend.fit);
    if (spike_->outcome == SpikeOutcome::stabilised) {
      finding.confidence = kStabilised;
      finding.because += "; stabilised: " + trend_words(trend, after_, figures_) + " since";
      return finding;
    }
    finding.leak = alerting_;
    finding.stage = alerting_ ? Stage::confirmed : Stage::none;
    finding.state = alerting_ ? State::leaking : State::growing;
    finding.confidence = trend.confidence;
    finding.because += "; still growing: " + trend_words(trend, after_, figures_) + " since";
    if (alerting_ && limit_ && trend.fit.slope_per_s > 0) finding.oom_in_s = time_to(trend.fit, last_bytes_, *limit_);
    return finding;
  }

  [[nodiscard]] std::vector<std::string> explain() const override {
    std::vector<std::string> lines;
    lines.push_back(
        fmt::format("spike: window {}, threshold {:.0f} %", figures_.span(window_s_), config_.spike_percent));
    if (samples_ == 0) return lines;
    const double rise = last_bytes_ - window_.start().bytes;
    lines.push_back(fmt::format("spike: {} within the window, needs {}", figures_.bytes(rise),
                                threshold() ? figures_.bytes(*threshold()) : "a start above zero or a known capacity"));
    if (spike_)
      lines.push_back(fmt::format("spike: began at {}, from {} to {}, outcome {}", iso8601(spike_->from),
                                  figures_.bytes(spike_->from_bytes), figures_.bytes(spike_->top_bytes),
                                  to_string(spike_->outcome)));
    return lines;
  }

 private:
  struct Event {
    Timestamp from{};  ///< the window's start when it first fired
    Timestamp top{};   ///< the ramp's last sample
    double from_bytes = 0;
    double top_bytes = 0;
    bool of_capacity = false;
    SpikeOutcome outcome = SpikeOutcome::none;
  };

  /// Sets it to the spike window, or to one sampling period if that is longer.
  void refresh_window() {
    since_period_ = 0;
    window_s_ = std::max(config_.spike_window_seconds, period_.median_s());
    window_.set_length(window_s_);
  }

  [[nodiscard]] bool low_start() const { return limit_ && window_.start().bytes < kLowShare * *limit_; }

  /// The rise that fires; nullopt if none can be determined: from zero, with an unknown capacity.
  [[nodiscard]] std::optional<double> threshold() const {
    if (low_start()) return share_ * *limit_;
    if (window_.start().bytes > 0) return share_ * window_.start().bytes;
    return std::nullopt;
  }

  [[nodiscard]] bool rising() const {
    const std::optional<double> needed = threshold();
    return window_.size() >= 2 && needed && last_bytes_ - window_.start().bytes > *needed;
  }

  void begin_or_extend() {
    if (spike_) {
      const bool same_ramp = seconds_between(spike_->from, last_time_) <= kSameRampWindows * window_s_;
      if (same_ramp || spike_->outcome == SpikeOutcome::none) {
        if (same_ramp && last_bytes_ > spike_->top_bytes) top_here();
        return;
      }
    }
    if (alerting_) return;  // another jump of a spike that still grows
    spike_ =
        Event{window_.start().time, last_time_, window_.start().bytes, last_bytes_, low_start(), SpikeOutcome::none};
    top_here();
  }

  void top_here() {
    spike_->top = last_time_;
    spike_->top_bytes = last_bytes_;
    after_.clear();
    after_.observe(last_time_, last_bytes_);
  }

  /// Determines the outcome: gone, stabilised, still growing.
  void follow() {
    after_.observe(last_time_, last_bytes_);
    const double height = spike_->top_bytes - spike_->from_bytes;
    if (last_bytes_ <= spike_->from_bytes + kGoneShare * height) {
      end(AlertEnd::released, "the memory of the spike was released");
      forget();
      return;
    }
    // As in linear_trend: check when the line may have moved, and again at a replaced value.
    const std::uint64_t unseen = samples_ - looked_;
    if (unseen > 0 && static_cast<double>(unseen) * kLookOneIn < after_.samples()) return;
    looked_ = samples_;
    if (after_.span_s() < stable_after_s_ || after_.samples() < static_cast<double>(config_.minimum_samples)) return;
    const Fit line = fit_slope(after_.all());
    const double grown = line.slope_per_s * after_.span_s();
    const bool grows = grown >= kGrowthShare * height && line.r_squared >= config_.min_r_squared;
    const double confidence = grows || alerting_ ? judge_trend(after_, config_.min_r_squared, 0).confidence : 0;
    const bool sure = confidence >= config_.confidence_threshold * (alerting_ ? kHysteresis : 1);
    if (grows && sure) {
      spike_->outcome = SpikeOutcome::still_growing;
      alerting_ = true;
      return;
    }
    if (!sure) {
      end(AlertEnd::withdrawn, "the growth after the spike did not continue");
      spike_->outcome = SpikeOutcome::stabilised;
    }
    if (!alerting_ && seconds_between(spike_->top, last_time_) > forget_s_) forget();
  }

  void forget() {
    spike_.reset();
    after_.clear();
  }

  void end(AlertEnd how, std::string reason) {
    if (!alerting_) return;
    alerting_ = false;
    last_end_ = how;
    last_end_reason_ = std::move(reason);
  }

  [[nodiscard]] std::string percent_words() const {
    const double rise = spike_->top_bytes - spike_->from_bytes;
    if (spike_->of_capacity && limit_) return fmt::format("{:.0f} % of the capacity", 100 * rise / *limit_);
    return spike_->from_bytes > 0 ? fmt::format("{:.0f} %", 100 * rise / spike_->from_bytes) : "from zero";
  }

  const DetectionConfig config_;
  const double share_;
  const double stable_after_s_;
  const double forget_s_;
  double window_s_ = config_.spike_window_seconds;
  ShortWindow window_;
  PeriodEstimate period_;
  std::size_t since_period_ = 0;
  TrendWindow after_;          ///< since the top of the spike
  std::uint64_t samples_ = 0;  ///< samples; a replaced one counts once
  std::uint64_t looked_ = 0;   ///< the sample at which follow() was last run
  std::optional<Event> spike_;
  Timestamp first_time_{};
  Timestamp last_time_{};
  double last_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Detector> make_spike(const DetectionConfig& config, const Scale& figures) {
  return std::make_unique<Spike>(config, figures);
}

const DetectorInfo spike_detector{
    "spike", "a large rise within a short window, and whether it continues (the rule documented as SpikeDetector)",
    make_spike};

}  // namespace vramtrack
