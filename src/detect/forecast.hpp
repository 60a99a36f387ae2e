// Forecast: how fast a window grows and when its peaks reach the limit, each as an interval.
#pragma once

#include <optional>
#include <vector>

#include "core/verdict.hpp"
#include "detect/evidence.hpp"
#include "detect/scales.hpp"

namespace vramtrack {

struct Forecast {
  Interval growth_bytes_per_s;       ///< Theil-Sen slope of the floors with Kendall's interval (10/50/90 %)
  double r_squared = 0;              ///< least squares of the floors on time
  double begins_s = 0;               ///< since the window's start: when a rise began after a standstill
  std::optional<double> rate_for_s;  ///< how long this has been the rate; nullopt: for as long as the growth
  std::optional<Interval> oom_in_s;  ///< from the window's end; nullopt without a limit or without growth
};

/// The part of the window before a kink is excluded from all of it: after a change of rate, the forecast uses the new
/// rate. The end is the first passage of the peaks to the limit. The variance of its logarithm is a sum, as in
/// docs/detectors/judge.md: the slope's error, the increments' diffusion (inverse Gaussian, CV^2 = D / (h b)), and a
/// change of rate that grows with how far beyond the window the forecast looks. O(48^2).
Forecast forecast(const Scales& scales, const Evidence& window, std::optional<double> limit_bytes);

/// An upper bound on how much a slowing rise still rises, if its rate continues falling as it has: like an exponential,
/// which stops before any slower law. nullopt: that it slows down is not certain over the window and over its
/// latter half, as with a load followed by a line. O(48).
std::optional<double> most_left_of_slowing(const Scales& scales, const Evidence& window);

/// Whether a parabola explains (t, y) better than a line; residuals of the size of `rounding` count as none. O(n).
bool bends(const std::vector<double>& t, const std::vector<double>& y, double rounding);

}  // namespace vramtrack
