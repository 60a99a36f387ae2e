#include "detect/regression.hpp"

#include <algorithm>
#include <cmath>

#include "core/statistics.hpp"

namespace vramtrack {
namespace {

/// Rounding leaves about 1e-16 of the squares of an exact line; residuals below this share are rounding.
constexpr double kRoundingShare = 1e-14;
/// The least number of effective samples: one degree of freedom is left.
constexpr double kLeastEffective = 3;
/// A t above this, with more degrees of freedom than that, has p below 1e-12: the distribution need not be computed.
constexpr double kCertainT = 12;
constexpr double kCertainDegrees = 30;
/// The late end of a time to the limit is at most this many times the middle.
constexpr double kLatest = 100;

}  // namespace

Fit fit_slope(const Moments& m) {
  Fit fit;
  fit.mean_t = m.mean_t;
  fit.mean_y = m.mean_y;
  if (m.n < 2 || m.tt <= 0) return fit;
  fit.slope_per_s = m.slope();
  if (m.yy > 0) fit.r_squared = std::clamp(fit.slope_per_s * m.ty / m.yy, 0.0, 1.0);
  return fit;
}

Fit fit_line(const Moments& m) {
  Fit fit = fit_slope(m);
  fit.effective_n = m.n;
  if (m.n < 3 || m.tt <= 0 || m.yy <= 0) return fit;
  const double residual = m.yy * (1 - fit.r_squared);
  if (residual > kRoundingShare * m.yy) {
    const double slope = fit.slope_per_s;
    const double steps = m.step_yy - 2 * slope * m.step_ty + slope * slope * m.step_tt;
    fit.autocorrelation = std::clamp(1 - steps / (2 * residual), 0.0, 1.0);
  }
  const double r = fit.autocorrelation;
  fit.effective_n = std::max(m.n * (1 - r) / (1 + r), kLeastEffective);
  const double degrees = fit.effective_n - 2;
  fit.slope_se = std::sqrt(std::max(residual, 0.0) / degrees / m.tt);
  const double t = fit.slope_se > 0 ? fit.slope_per_s / fit.slope_se : 0;
  if (t > kCertainT && degrees > kCertainDegrees) {
    fit.p_value = 0;
  } else if (fit.slope_se > 0) {
    fit.p_value = 1 - students_t_cdf(t, degrees);
  } else {
    fit.p_value = fit.slope_per_s > 0 ? 0 : 1;
  }
  return fit;
}

Interval slope_interval(const Fit& fit) {
  return {fit.slope_per_s - kZ90 * fit.slope_se, fit.slope_per_s, fit.slope_per_s + kZ90 * fit.slope_se};
}

Interval time_to(const Fit& fit, double used_bytes, double limit_bytes) {
  const double left = std::max(limit_bytes - used_bytes, 0.0);
  const Interval slope = slope_interval(fit);
  return {left / slope.high, left / slope.mid, left / std::max(slope.low, slope.mid / kLatest)};
}

}  // namespace vramtrack
