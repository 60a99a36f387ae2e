// Least squares of bytes over time: running moments that can be merged, and the line through them.
#pragma once

#include <algorithm>
#include <span>

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
  /// The order is irrelevant. O(1).
  void merge(const Moments& other);

  /// Slope of the least-squares line, in y per t; 0 if there is none (fewer than 2 samples, or all at one time).
  [[nodiscard]] double slope() const { return n < 2 || tt <= 0 ? 0 : ty / tt; }
  /// Sum of squares about that line.
  [[nodiscard]] double residual() const { return std::max(0.0, yy - slope() * ty); }
};

/// The moments of values that are all available, without their steps: in two passes, which is exact where add() rounds.
/// REQUIRES: as many times as values. O(n).
Moments moments_of(std::span<const double> t_s, std::span<const double> y);

}  // namespace vramtrack
