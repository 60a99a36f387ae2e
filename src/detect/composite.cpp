// composite: linear_trend and spike side by side; the more confident one decides (docs/detectors/composite.md).
#include <string>
#include <utility>

#include "detect/linear_trend.hpp"
#include "detect/spike.hpp"

namespace vramtrack {

extern const DetectorInfo composite_detector;

namespace {

class Composite final : public Detector {
 public:
  Composite(const DetectionConfig& config, const Scale& figures)
      : trend_(make_linear_trend(config, figures)), spike_(make_spike(config, figures)) {}

  void observe(Timestamp time, double used_bytes) override {
    const bool trend_stood = trend_->alerting();
    const bool spike_stood = spike_->alerting();
    trend_->observe(time, used_bytes);
    spike_->observe(time, used_bytes);
    if (trend_stood && !trend_->alerting()) last_ended_ = trend_.get();
    if (spike_stood && !spike_->alerting()) last_ended_ = spike_.get();
  }

  void set_limit(std::optional<double> limit_bytes) override {
    trend_->set_limit(limit_bytes);
    spike_->set_limit(limit_bytes);
  }

  [[nodiscard]] bool alerting() const override { return trend_->alerting() || spike_->alerting(); }

  [[nodiscard]] Finding finding() const override {
    Finding trend = trend_->finding();
    Finding spike = spike_->finding();
    // A detector that alerts wins over one that does not; then the higher confidence wins; then the trend, unless it
    // cannot conclude anything yet and the other one can.
    bool spike_wins = spike.confidence > trend.confidence ||
                      (spike.confidence == trend.confidence && trend.state == State::too_short);
    if (spike.leak != trend.leak) spike_wins = spike.leak;
    Finding winner = spike_wins ? std::move(spike) : std::move(trend);
    winner.because = winner.detector + ": " + winner.because;
    winner.detector = composite_detector.name;
    return winner;
  }

  [[nodiscard]] AlertEnd last_end() const override {
    return last_ended_ != nullptr ? last_ended_->last_end() : AlertEnd::withdrawn;
  }
  [[nodiscard]] std::string last_end_reason() const override {
    return last_ended_ != nullptr ? last_ended_->last_end_reason() : std::string{};
  }

  [[nodiscard]] std::vector<std::string> explain() const override {
    std::vector<std::string> lines = trend_->explain();
    for (std::string& line : spike_->explain()) lines.push_back(std::move(line));
    return lines;
  }

 private:
  std::unique_ptr<Detector> trend_;
  std::unique_ptr<Detector> spike_;
  const Detector* last_ended_ = nullptr;
};

std::unique_ptr<Detector> make_composite(const DetectionConfig& config, const Scale& figures) {
  return std::make_unique<Composite>(config, figures);
}

}  // namespace

const DetectorInfo composite_detector{
    "composite", "linear_trend and spike: the more confident of the two (the rule documented as CompositeDetector)",
    make_composite};

}  // namespace vramtrack
