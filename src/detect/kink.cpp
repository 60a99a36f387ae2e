#include "detect/kink.hpp"

#include <algorithm>
#include <cmath>

#include "detect/regression.hpp"

namespace vramtrack {
namespace {

/// Points of each of the two lines; fewer do not make a line.
constexpr std::size_t kLeastPoints = 3;

}  // namespace

std::optional<Kink> broken_line(const std::vector<double>& t, const std::vector<double>& y) {
  const std::size_t n = t.size();
  const Fit line = fit_slope(moments_of(t, y));
  double line_squares = 0;
  for (std::size_t i = 0; i < n; ++i) line_squares += line.residual(t[i], y[i]) * line.residual(t[i], y[i]);
  std::optional<Kink> best;
  std::vector<double> hinge(n);
  for (std::size_t knot = kLeastPoints - 1; knot + kLeastPoints <= n; ++knot) {
    // y = a + b t + c hinge: c from what the line leaves of y and of hinge (Frisch & Waugh, Econometrica 1, 1933).
    for (std::size_t i = 0; i < n; ++i) hinge[i] = std::max(0.0, t[i] - t[knot]);
    const Fit hinge_line = fit_slope(moments_of(t, hinge));
    double along = 0;
    double size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double h = hinge_line.residual(t[i], hinge[i]);
      along += h * line.residual(t[i], y[i]);
      size += h * h;
    }
    if (!(size > 0)) continue;
    const double c = along / size;
    const double squares = std::max(0.0, line_squares - c * along);
    if (best && squares >= best->squares) continue;
    const double early = line.slope_per_s - c * hinge_line.slope_per_s;
    best = Kink{knot, early, early + c, squares};
  }
  return best;
}

bool explains_better(double squares, double other_squares, double least_squares, std::size_t n, int more) {
  const auto points = static_cast<double>(n);
  const double ratio = std::max(squares, least_squares) / std::max(other_squares, least_squares);
  return points * std::log(ratio) + more * std::log(points) < 0;
}

}  // namespace vramtrack
