// linear_trend: the LinearTrendDetector of the documents, and the confidence that it shares with spike
// (docs/detectors/linear_trend.md).
#pragma once

#include <memory>

#include "detect/detector.hpp"
#include "detect/regression.hpp"
#include "detect/trend_window.hpp"

namespace vramtrack {

/// A window's line and its value as evidence of a leak.
struct Trend {
  Fit fit;
  double recent_share = 0;  ///< slope of the latest third over the slope of all, 0..1: still growing?
  double confidence = 0;
};

/// Confidence = (1 - p) * |r| * min(1, R^2 / min_r_squared) * min(1, slope / min_slope) * (1 + recent_share) / 2;
/// 0 if the slope is not positive. O(buckets), under a microsecond.
Trend judge_trend(const TrendWindow& window, double min_r_squared, double min_slope_bytes_per_s);

/// A line through n samples hardly moves until n has grown by one part in this many: checking only then keeps the cost
/// of a sample at a few nanoseconds; below 128 samples, every one is checked.
inline constexpr double kLookOneIn = 64;
/// An active alert ends when a threshold is missed by more than a tenth: without this margin, noise at the threshold
/// would raise an alert every few samples.
inline constexpr double kHysteresis = 0.9;

/// "slope 12.4 MiB/min, R2 0.98 over 47 min, 2820 samples".
std::string trend_words(const Trend& trend, const TrendWindow& window, const Scale& figures);

std::unique_ptr<Detector> make_linear_trend(const DetectionConfig& config, const Scale& figures);

}  // namespace vramtrack
