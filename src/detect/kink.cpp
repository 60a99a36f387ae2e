#include "detect/kink.hpp"

#include <algorithm>
#include <cmath>

#include "detect/regression.hpp"

namespace vramtrack {
namespace {

/// Points of each of the two lines; fewer do not make a line.
constexpr std::size_t kLeastPoints = 3;

/// y = a + b t + c hinge: c from what the line leaves of y and of hinge (Frisch & Waugh, Econometrica 1, 1933).
class BrokenLines {
 public:
  BrokenLines(const std::vector<double>& t, const std::vector<double>& y)
      : t_(t), y_(y), line_(fit_slope(moments_of(t, y))), hinge_(t.size()) {
    for (std::size_t i = 0; i < t.size(); ++i) line_squares_ += line_.residual(t[i], y[i]) * line_.residual(t[i], y[i]);
  }

  /// The best one whose lines meet at `knot_s`; `Kink::at` is left to the caller.
  Kink at(double knot_s) {
    for (std::size_t i = 0; i < t_.size(); ++i) hinge_[i] = std::max(0.0, t_[i] - knot_s);
    const Fit hinge_line = fit_slope(moments_of(t_, hinge_));
    double along = 0;
    double size = 0;
    for (std::size_t i = 0; i < t_.size(); ++i) {
      const double h = hinge_line.residual(t_[i], hinge_[i]);
      along += h * line_.residual(t_[i], y_[i]);
      size += h * h;
    }
    const double c = size > 0 ? along / size : 0;
    const double early = line_.slope_per_s - c * hinge_line.slope_per_s;
    return {0, early, early + c, std::max(0.0, line_squares_ - c * along)};
  }

 private:
  const std::vector<double>& t_;
  const std::vector<double>& y_;
  Fit line_;
  double line_squares_ = 0;
  std::vector<double> hinge_;
};

}  // namespace

std::optional<Kink> broken_line(const std::vector<double>& t, const std::vector<double>& y) {
  const std::size_t n = t.size();
  BrokenLines lines(t, y);
  std::optional<Kink> best;
  for (std::size_t knot = kLeastPoints - 1; knot + kLeastPoints <= n; ++knot) {
    Kink kink = lines.at(t[knot]);
    if (best && kink.squares >= best->squares) continue;
    kink.at = knot;
    best = kink;
  }
  return best;
}

double squares_with_knot(const std::vector<double>& t, const std::vector<double>& y, double knot_s) {
  return BrokenLines(t, y).at(knot_s).squares;
}

bool explains_better(double squares, double other_squares, double least_squares, std::size_t n, int more) {
  const auto points = static_cast<double>(n);
  const double ratio = std::max(squares, least_squares) / std::max(other_squares, least_squares);
  return points * std::log(ratio) + more * std::log(points) < 0;
}

}  // namespace vramtrack
