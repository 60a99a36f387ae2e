#include "detect/kink.hpp"

#include <algorithm>
#include <cmath>

#include "detect/regression.hpp"

namespace vramtrack {
namespace {

/// Points of each of the two lines; fewer do not make a line.
constexpr std::size_t kLeastPoints = 3;

/// y = a + b t + c hinge: c from what the line leaves of y and of hinge (Frisch & Waugh, Econometrica 1, 1933). What it
/// leaves of y sums to zero, alone and times t, and the hinge is zero before the knot: only what is beyond the
/// knot is summed up.
class BrokenLines {
 public:
  BrokenLines(const std::vector<double>& t, const std::vector<double>& y)
      : t_(t), moments_(moments_of(t, y)), line_(fit_slope(moments_)), left_(t.size()) {
    for (std::size_t i = 0; i < t.size(); ++i) {
      left_[i] = line_.residual(t[i], y[i]);
      line_squares_ += left_[i] * left_[i];
    }
  }

  /// The best broken line that bends at `knot_s`; `Kink::at` is left to the caller.
  [[nodiscard]] Kink at(double knot_s) const {
    double hinge = 0;
    double hinge_t = 0;
    double hinge_squares = 0;
    double along = 0;
    for (std::size_t i = t_.size(); i-- > 0 && t_[i] > knot_s;) {
      const double h = t_[i] - knot_s;
      hinge += h;
      hinge_t += h * (t_[i] - moments_.mean_t);
      hinge_squares += h * h;
      along += h * left_[i];
    }
    const double slope = moments_.tt > 0 ? hinge_t / moments_.tt : 0;
    const double size = hinge_squares - hinge * hinge / moments_.n - slope * hinge_t;
    // If the hinge is a line itself, only rounding errors are left.
    const double c = size > kRounding * hinge_squares ? along / size : 0;
    const double early = line_.slope_per_s - c * slope;
    return {0, early, early + c, std::max(0.0, line_squares_ - c * along)};
  }

 private:
  static constexpr double kRounding = 1e-12;

  const std::vector<double>& t_;
  Moments moments_;
  Fit line_;
  double line_squares_ = 0;
  std::vector<double> left_;
};

}  // namespace

std::optional<Kink> broken_line(const std::vector<double>& t, const std::vector<double>& y) {
  const std::size_t n = t.size();
  const BrokenLines lines(t, y);
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
