// Doubling: an allocator that takes a pool twice as large from the driver each time the last one is used up (JAX
// and TensorFlow: BFC). Its steps are rare and its pauses double, so no line through them shows anything; but each
// step and the pause after it show how fast the pool was used up. Mathematics: docs/detectors/judge.md, section 16.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "detect/detector.hpp"

namespace vramtrack {

/// The steps of a series, as long as each is twice the one before. O(1) per sample, a dozen steps. Pure.
class DoublingPool {
 public:
  struct Step {
    Timestamp time{};
    double bytes = 0;
  };

  /// `limit_bytes`: a last step that takes all that is left is no doubling. Returns whether a step was taken or lost.
  bool observe(Timestamp time, double bytes, std::optional<double> limit_bytes);
  /// In order; if there are fewer than kLeastSteps, it is not a pool that doubles.
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  /// How fast each step but the last was used up, in bytes per second.
  [[nodiscard]] std::vector<double> rates() const;

  static constexpr std::size_t kLeastSteps = 3;

 private:
  std::vector<Step> steps_;
  bool begun_ = false;
  double last_bytes_ = 0;
};

/// Judges a series by that: if a pool is used up at the same rate time after time, something keeps filling it.
class DoublingJudge final : public Detector {
 public:
  /// `figures`: as for DetectorInfo::make.
  DoublingJudge(const DetectionConfig& config, const Scale& figures) : config_(config), figures_(figures) {}

  void observe(Timestamp time, double used_bytes) override;
  void set_limit(std::optional<double> limit_bytes) override { limit_bytes_ = limit_bytes; }
  [[nodiscard]] bool alerting() const override { return alerting_; }
  [[nodiscard]] bool suspecting() const override { return suspecting_; }
  [[nodiscard]] Finding finding() const override;
  [[nodiscard]] std::string last_end_reason() const override { return end_reason_; }

 private:
  void decide();
  void end(std::string reason);
  [[nodiscard]] int doublings_left() const;

  DetectionConfig config_;
  const Scale& figures_;
  DoublingPool pool_;
  std::optional<double> limit_bytes_;
  double rate_bytes_per_s_ = 0;  ///< the median of the pool's rates
  double probability_ = 0;
  Timestamp last_{};
  double last_bytes_ = 0;
  bool suspecting_ = false;
  bool alerting_ = false;
  std::string end_reason_;
};

}  // namespace vramtrack
