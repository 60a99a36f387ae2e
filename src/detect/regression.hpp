// Least squares of bytes on time from running moments that can be merged, and how sure the slope is.
#pragma once

#include <cstdint>
#include <span>

#include "core/verdict.hpp"

namespace vramtrack {

/// Sums over a stretch of samples, about their own means, so that 1e11 bytes and nanoseconds keep their precision
/// (Welford 1962; merged as in Chan, Golub & LeVeque, "Updating formulae and a pairwise algorithm for computing
/// sample variances", 1979). Times are seconds since an origin that the caller keeps.
struct Moments {
  double n = 0;
  double mean_t = 0;
  double mean_y = 0;
  double tt = 0;  ///< sum of (t - mean_t)^2
  double ty = 0;
  double yy = 0;
  /// Sums over steps from one sample to the next (the step into a stretch belongs to it), for the residuals'
  /// autocorrelation.
  double step_tt = 0;
  double step_ty = 0;
  double step_yy = 0;

  /// O(1).
  void add(double t_s, double y);
  void add_step(double dt_s, double dy) {
    step_tt += dt_s * dt_s;
    step_ty += dt_s * dy;
    step_yy += dy * dy;
  }
  /// Order does not matter. O(1).
  void merge(const Moments& other);
};

/// The moments of values that are at hand, without their steps: in two passes, which is exact where add() rounds.
/// REQUIRES: as many times as values. O(n).
Moments moments_of(std::span<const double> t_s, std::span<const double> y);

/// The line through a stretch. All zero where there is none (fewer than 2 samples, or all at one time).
struct Fit {
  double slope_per_s = 0;
  double r_squared = 0;        ///< 0 for a constant series: a line explains none of no variance
  double autocorrelation = 0;  ///< of the residuals at lag 1, 0 to 1
  double effective_n = 0;      ///< samples, as if independent
  double slope_se = 0;         ///< standard error of the slope, by effective_n
  double p_value = 1;          ///< of "the slope is not positive"
  /// The fitted value at `t_s`.
  [[nodiscard]] double at(double t_s) const { return mean_y + slope_per_s * (t_s - mean_t); }
  /// Of a sample against the line.
  [[nodiscard]] double residual(double t_s, double y) const {
    return y - (mean_y - slope_per_s * mean_t) - slope_per_s * t_s;
  }
  double mean_t = 0;
  double mean_y = 0;
};

/// 90th percentile of the standard normal: intervals are given from the 10th to the 90th.
inline constexpr double kZ90 = 1.2815515655446004;

/// Slope and R^2 alone: the cheap part of fit_line(). O(1).
Fit fit_slope(const Moments& moments);

/// With the slope's significance. The residuals' lag-1 autocorrelation comes from their steps (Durbin & Watson,
/// Biometrika 37, 1950: r = 1 - d/2); n_e = n (1-r)/(1+r) samples count, at least 3 so that one degree of freedom
/// is left, in a t-test with n_e - 2 degrees (Santer et al., J. Geophys. Res. 105, 2000). O(1), about 0.3 us.
Fit fit_line(const Moments& moments);

/// 10th, 50th and 90th percentile of the slope: slope -+ 1.2816 standard errors.
Interval slope_interval(const Fit& fit);

/// Seconds until the line from `used` reaches `limit`; from the slope's interval. The late end is at most 100 times
/// the middle, also where the slope's low end is not positive. REQUIRES fit.slope_per_s > 0.
Interval time_to(const Fit& fit, double used_bytes, double limit_bytes);

}  // namespace vramtrack
