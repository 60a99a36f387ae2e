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

/// How the troughs climb.
struct Climb {
  std::size_t cycles = 0;  ///< on which it is based
  double step_bytes = 0;   ///< of a cycle, in the mean
  double cycle_s = 0;      ///< likewise
  double net_bytes = 0;
  Timestamp onset{};
  double chance = 1;       ///< weight of chance, relative to a leak's 1
  double probability = 0;  ///< of a leak
};

/// The last ones, each above the one before by `least_bytes` or more. nullopt: fewer than five, or cycles of a few
/// minutes. O(troughs). Pure.
std::optional<Climb> climb_of(const std::vector<Trough>& troughs, double least_bytes);

/// Judges a series by its troughs. It is confirmed only when little is left: a load that grows looks the same.
class CycleJudge final : public Detector {
 public:
  explicit CycleJudge(const DetectionConfig& config) : config_(config) {}

  void observe(Timestamp time, double used_bytes) override;
  void set_limit(std::optional<double> limit_bytes) override { limit_bytes_ = limit_bytes; }
  [[nodiscard]] bool alerting() const override { return alerting_; }
  [[nodiscard]] bool suspecting() const override { return suspecting_; }
  [[nodiscard]] Finding finding() const override;
  [[nodiscard]] std::string last_end_reason() const override { return end_reason_; }

 private:
  void decide();
  void end(std::string reason);
  [[nodiscard]] std::optional<double> cycles_left() const;

  DetectionConfig config_;
  Cycles cycles_;
  std::optional<Climb> climb_;
  std::optional<double> limit_bytes_;
  double level_bytes_ = 0;  ///< the last trough of the climb
  double peak_bytes_ = 0;   ///< the highest of the climb's cycles, and what the next one will add
  std::size_t misses_ = 0;  ///< cycles since the troughs last climbed
  Timestamp last_{};
  bool suspecting_ = false;
  bool alerting_ = false;
  std::string end_reason_;
};

}  // namespace vramtrack
