// Calibration: from the weight of the evidence to a well-calibrated probability. Platt, "Probabilistic outputs for
// support vector machines", 1999: the logit is shifted and scaled, by figures fitted on the tune split of
// bench/accuracy (docs/detectors/judge.md, section 4).
#pragma once

#include <algorithm>
#include <cmath>

namespace vramtrack {

/// The evidence is never taken to be more certain than this, in either direction.
inline constexpr double kLeastCalibrated = 1e-4;

inline double calibrated(double probability, double shift, double scale) {
  const double p = std::clamp(probability, kLeastCalibrated, 1 - kLeastCalibrated);
  return 1 / (1 + std::exp(-(shift + scale * std::log(p / (1 - p)))));
}

/// For a series that rises: in the middle range, continuing rises are leaks more often than the weights of their rivals
/// suggest.
inline double calibrated_rise(double probability) {
  return calibrated(probability, 1.05, 0.80);
}

/// For any other series: a series that seems harmless is sometimes the beginning of a leak.
inline double calibrated_rest(double probability) {
  return calibrated(probability, -0.24, 0.69);
}

}  // namespace vramtrack
