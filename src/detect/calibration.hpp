// Calibration: from the weight of the evidence to a probability that holds. Platt, "Probabilistic outputs for support
// vector machines", 1999: the logit is shifted and scaled, by figures fitted on the tune split of bench/accuracy
// (docs/detectors/judge.md, section 4).
#pragma once

#include <algorithm>
#include <cmath>

namespace vramtrack {

/// The evidence is not taken for surer than this, either way.
inline constexpr double kLeastCalibrated = 1e-4;

inline double calibrated(double probability, double shift, double scale) {
  const double p = std::clamp(probability, kLeastCalibrated, 1 - kLeastCalibrated);
  return 1 / (1 + std::exp(-(shift + scale * std::log(p / (1 - p)))));
}

/// Of a series that rises: rises that go on are leaks more often than their rivals' weights say in the middle.
inline double calibrated_rise(double probability) {
  return calibrated(probability, 1.05, 0.80);
}

/// Of any other: what looks like nothing is the beginning of a leak now and then.
inline double calibrated_rest(double probability) {
  return calibrated(probability, -0.24, 0.69);
}

}  // namespace vramtrack
