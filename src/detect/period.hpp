// The sampling period of a series, robust to gaps and jitter.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "core/median.hpp"

namespace vramtrack {

/// Median of up to kKept recent intervals (every interval at first, then every kEvery-th, so that those kept span
/// minutes, not seconds). O(1) to feed, and to query again before another interval is kept; else O(kKept). A median,
/// because one gap must not move it. Not thread-safe.
class PeriodEstimate {
 public:
  static constexpr std::size_t kKept = 32;
  static constexpr std::size_t kEvery = 16;

  void observe(double interval_s) {
    if (filled_ >= intervals_.size() && ++skipped_ % kEvery != 0) return;
    intervals_[next_] = static_cast<float>(interval_s);
    next_ = (next_ + 1) % intervals_.size();
    filled_ = std::min(filled_ + 1, intervals_.size());
    median_s_ = kUnknown;
  }

  /// Seconds; 0 before the first interval.
  [[nodiscard]] double median_s() const {
    if (filled_ == 0) return 0;
    if (median_s_ == kUnknown) {
      std::array<float, kKept> sorted = intervals_;
      median_s_ = upper_median(std::span(sorted).first(filled_));
    }
    return static_cast<double>(median_s_);
  }

  [[nodiscard]] std::size_t count() const { return filled_; }

 private:
  static constexpr float kUnknown = -1;

  std::array<float, kKept> intervals_{};
  mutable float median_s_ = kUnknown;
  std::size_t next_ = 0;
  std::size_t filled_ = 0;
  std::size_t skipped_ = 0;
};

}  // namespace vramtrack
