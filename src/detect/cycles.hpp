// Cycles: what remains after each cycle of a series with large rises and falls, such as runs of a program one after
// another, or models that are swapped. The troughs show it, whatever the peaks do. Mathematics:
// docs/detectors/judge.md, section 15.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "detect/detector.hpp"

namespace vramtrack {

/// The point where one cycle ended and the next one began.
struct Trough {
  Timestamp time{};
  double bytes = 0;
  double peak_bytes = 0;  ///< the highest level since the previous trough; for the first, the trough itself
};

/// Splits a series at its large falls. O(1) per sample; the last kMost troughs are kept. Pure.
class Cycles {
 public:
  static constexpr std::size_t kMost = 48;

  /// A swing is a fall by a fifth of the peak, and by `least_bytes`. Returns whether a cycle has begun with this
  /// sample.
  bool observe(Timestamp time, double bytes, double least_bytes);
  [[nodiscard]] const std::vector<Trough>& troughs() const { return troughs_; }
  /// The highest level since the last trough.
  [[nodiscard]] double peak_bytes() const { return high_bytes_; }

 private:
  std::vector<Trough> troughs_;
  bool begun_ = false;
  bool falls_ = true;  ///< it has fallen from its peak and not yet risen again
  double high_bytes_ = 0;
  double low_bytes_ = 0;
  Timestamp low_time_{};
};

/// How the troughs rise. Its lows are the troughs that no later trough falls back to: all of them where the same work
/// is repeated, some where cycles differ, such as those of models of different sizes.
struct CycleTrend {
  std::size_t cycles = 0;  ///< since the trend began
  std::size_t lows = 0;    ///< how many of them are lows
  double step_bytes = 0;   ///< mean rise per cycle
  double cycle_s = 0;      ///< mean length of a cycle
  double low_every_s = 0;  ///< mean time between two lows
  double net_bytes = 0;
  double level_bytes = 0;  ///< the level of the latest low
  Timestamp onset{};
  double chance = 1;       ///< weight of chance, relative to a leak's 1
  double probability = 0;  ///< of a leak
};

/// The trend of the last troughs, if more of them than chance explains are lows: each later trough is higher by at
/// least `least_bytes`. nullopt: fewer than five lows, cycles of a few minutes, or one step that is most of it. Pure.
/// `in_a_row`: each must be a low. O(troughs^2).
std::optional<CycleTrend> cycle_trend_of(const std::vector<Trough>& troughs, double least_bytes, bool in_a_row = false);

/// Judges a series by its troughs. A leak is confirmed only when little memory is left: growing load looks the same.
class CycleJudge final : public Detector {
 public:
  /// `figures`: as for DetectorInfo::make.
  CycleJudge(const DetectionConfig& config, const Scale& figures) : config_(config), figures_(figures) {}

  void observe(Timestamp time, double used_bytes) override;
  void set_limit(std::optional<double> limit_bytes) override { limit_bytes_ = limit_bytes; }
  [[nodiscard]] bool alerting() const override { return alerting_; }
  [[nodiscard]] bool suspecting() const override { return suspecting_; }
  [[nodiscard]] double cycle_s() const override { return suspecting_ && trend_ ? trend_->low_every_s : 0; }
  [[nodiscard]] Finding finding() const override;
  [[nodiscard]] std::string last_end_reason() const override { return end_reason_; }

 private:
  void decide();
  void end(std::string reason);
  [[nodiscard]] std::optional<double> cycles_left() const;

  DetectionConfig config_;
  const Scale& figures_;
  Cycles cycles_;
  std::optional<CycleTrend> trend_;
  std::optional<double> limit_bytes_;
  double peak_bytes_ = 0;   ///< what the largest of the trend's cycles would reach from where they begin now
  std::size_t misses_ = 0;  ///< cycles since the troughs last rose
  Timestamp last_{};
  bool suspecting_ = false;
  bool alerting_ = false;
  std::string end_reason_;
};

}  // namespace vramtrack
