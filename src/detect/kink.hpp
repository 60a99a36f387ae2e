// Kink: a stretch that first rose slowly, or not at all, and then at another rate.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace vramtrack {

/// Parameters of a line, of a parabola, and of two lines that meet: three, and three for the knot, which is searched
/// for (Friedman, Multivariate adaptive regression splines, Annals of Statistics 19, 1991, section 3.6).
inline constexpr int kLineParameters = 2;
inline constexpr int kParabolaParameters = 3;
inline constexpr int kKinkParameters = 6;
/// A line that misses the floors by no more than this share of their rise fits as well as can be determined: buckets
/// and pages round by more.
inline constexpr double kRoundingShare = 0.001;
/// If the part before a kink makes up less than this share of the rise, the growth began at the kink. A leak that was
/// slow before has a larger one.
inline constexpr double kStandShare = 0.05;

/// Two straight lines that meet at a point of the stretch.
struct Kink {
  std::size_t at = 0;  ///< index of the point at which they meet
  double early_slope_per_s = 0;
  double late_slope_per_s = 0;
  double squares = 0;  ///< sum of the squared residuals
};

/// The least-squares broken line through (t, y), with at least three points before its knot and three from its knot
/// on; nullopt if there are too few points. REQUIRES: t rises. O(n^2), n <= 48: some us.
std::optional<Kink> broken_line(const std::vector<double>& t, const std::vector<double>& y);

/// The sum of the squared residuals of the best broken line whose lines meet at `knot_s`. REQUIRES: t rises. O(n).
double squares_with_knot(const std::vector<double>& t, const std::vector<double>& y, double knot_s);

/// Whether a model with `more` additional parameters explains n points better than another, by the Bayesian information
/// criterion: n ln(squares) + parameters ln(n) (Schwarz, Annals of Statistics 6, 1978). Sums below `least_squares` are
/// rounding errors under any model.
bool explains_better(double squares, double other_squares, double least_squares, std::size_t n, int more);

}  // namespace vramtrack
