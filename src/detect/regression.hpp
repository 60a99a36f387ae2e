// The least-squares line through running moments, and the certainty of its slope.
#pragma once

#include "core/moments.hpp"
#include "core/verdict.hpp"

namespace vramtrack {

/// The line through a stretch. All zero if there is none (fewer than 2 samples, or all at one time).
struct Fit {
  double slope_per_s = 0;
  double r_squared = 0;        ///< 0 for a constant series: there is no variance to explain
  double autocorrelation = 0;  ///< the autocorrelation of the residuals at lag 1, 0 to 1
  double effective_n = 0;      ///< equivalent number of independent samples
  double slope_se = 0;         ///< standard error of the slope, based on effective_n
  double p_value = 1;          ///< the p-value of "the slope is not positive"
  /// The fitted value at `t_s`.
  [[nodiscard]] double at(double t_s) const { return mean_y + slope_per_s * (t_s - mean_t); }
  /// The residual of a sample.
  [[nodiscard]] double residual(double t_s, double y) const {
    return y - (mean_y - slope_per_s * mean_t) - slope_per_s * t_s;
  }
  double mean_t = 0;
  double mean_y = 0;
};

/// 90th percentile of the standard normal: intervals are given from the 10th to the 90th.
inline constexpr double kZ90 = 1.2815515655446004;

/// Only the slope and R^2: the cheap part of fit_line(). O(1).
Fit fit_slope(const Moments& moments);

/// With the slope's significance. The residuals' lag-1 autocorrelation comes from their steps (Durbin & Watson,
/// Biometrika 37, 1950: r = 1 - d/2); n_e = n (1-r)/(1+r) samples count, at least 3 so that one degree of freedom is
/// left, in a t-test with n_e - 2 degrees (Santer et al., J. Geophys. Res. 105, 2000). O(1), about 0.3 us.
Fit fit_line(const Moments& moments);

/// The 10th, 50th and 90th percentiles of the slope: slope -+ 1.2816 standard errors.
Interval slope_interval(const Fit& fit);

/// Seconds until the line from `used` reaches `limit`, based on the slope's interval. The late end is at most 100 times
/// the middle, even if the slope's low end is not positive. REQUIRES fit.slope_per_s > 0.
Interval time_to(const Fit& fit, double used_bytes, double limit_bytes);

}  // namespace vramtrack
