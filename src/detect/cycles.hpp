// Cycles: what is left after each cycle of a series that rises and falls by much: runs of a program one after the
// other, models that are swapped. What stays behind shows in the troughs, whatever the peaks do. Mathematics:
// docs/detectors/judge.md, section 15.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "detect/detector.hpp"

namespace vramtrack {

/// Where one cycle ended and the next one began.
struct Trough {
  Timestamp time{};
  double bytes = 0;
  double peak_bytes = 0;  ///< the highest since the trough before it; of the first, the trough itself
};

/// Splits a series at its large falls. O(1) a sample; the last kMost troughs are kept. Pure.
class Cycles {
 public:
  static constexpr std::size_t kMost = 48;

  /// A swing is a fall by a fifth of the peak, and by `least_bytes`. Returns whether a cycle has begun with this
  /// sample.
  bool observe(Timestamp time, double bytes, double least_bytes);
  [[nodiscard]] const std::vector<Trough>& troughs() const { return troughs_; }
  /// The highest since the last trough.
  [[nodiscard]] double peak_bytes() const { return high_bytes_; }

 private:
  std::vector<Trough> troughs_;
  bool begun_ = false;
  bool falls_ = true;  ///< it has fallen from its peak and not yet risen again
  double high_bytes_ = 0;
  double low_bytes_ = 0;
  Timestamp low_time_{};
};

/// How the troughs rise. Its lows are those that no later trough falls back to: all of them where the same work is
/// repeated, some where cycles differ, as models of different sizes do.
struct CycleTrend {
  std::size_t cycles = 0;  ///< since it began
  std::size_t lows = 0;    ///< of them
  double step_bytes = 0;   ///< of a cycle, in the mean
  double cycle_s = 0;      ///< likewise
  double low_every_s = 0;  ///< in the mean, between two lows
  double net_bytes = 0;
  double level_bytes = 0;  ///< the level of the latest low
  Timestamp onset{};
  double chance = 1;       ///< weight of chance, relative to a leak's 1
  double probability = 0;  ///< of a leak
};

/// The last ones, if more of them than chance explains are lows: each later trough is higher by `least_bytes` or more.
/// nullopt: fewer than five lows, cycles of a few minutes, or one step that makes up most of it. O(troughs^2). Pure.
/// `in_a_row`: each must be a low.
std::optional<CycleTrend> cycle_trend_of(const std::vector<Trough>& troughs, double least_bytes, bool in_a_row = false);

/// Judges a series by its troughs. It is confirmed only when little is left: a load that grows looks the same.
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
