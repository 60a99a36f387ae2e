#include "detect/forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "detect/regression.hpp"

namespace vramtrack {
namespace {

/// The residuals' autocorrelation is taken for no more than this: (1 + r) / (1 - r) has no end.
constexpr double kMostAutocorrelation = 0.95;
/// Points below which nothing is foretold, and below which no parabola is.
constexpr std::size_t kLeastPoints = 3;
constexpr std::size_t kParabolaPoints = 6;
/// Parameters of the parabola, and standard errors its curvature must have: 1 %, two-sided.
constexpr double kParabolaParameters = 3;
constexpr double kCurvatureErrors = 2.6;
/// Where the Theil-Sen slope is below this share of the mean rate, most pairs of floors lie on one tread of a stair:
/// the mean rate is the better middle.
constexpr double kTreadShare = 0.5;
// The terms of the variance of the logarithm of the time left; a standard deviation each.
constexpr double kFloorSigma = 0.1;   ///< no forecast is better than this
constexpr double kDriftSigma = 0.15;  ///< change of rate, per e-fold of how far beyond the window one looks
constexpr double kMostSigma = 1.5;    ///< beyond this (a factor of 7 either way) a forecast says nothing anyhow
/// Headroom is not taken for less than this share of the limit where it is divided by.
constexpr double kLeastHeadroom = 0.001;
/// Growth whose centroid lies above this gathers pace, perhaps; a parabola is then tried.
constexpr double kSteadyCentroid = 0.5;
/// The parabola's word spreads the interval by half of its distance from the line's, as if it were no less than this
/// share of the line's.
constexpr double kModelShare = 0.5;
constexpr double kSoonest = 0.1;

/// Lag-1 autocorrelation of the residuals, clipped to [0, kMostAutocorrelation].
double residual_autocorrelation(const std::vector<double>& t, const std::vector<double>& y, const Fit& line) {
  double c0 = 0;
  double c1 = 0;
  double previous = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double r = line.residual(t[i], y[i]);
    c0 += r * r;
    if (i > 0) c1 += r * previous;
    previous = r;
  }
  return c0 > 0 ? std::clamp(c1 / c0, 0.0, kMostAutocorrelation) : 0;
}

/// Theil-Sen slope with the interval of Sen (1968), Kendall's variance inflated for autocorrelation (Hamed & Rao 1998).
Interval theil_sen(const std::vector<double>& t, const std::vector<double>& y, double autocorrelation) {
  std::vector<double> slopes;
  slopes.reserve(t.size() * (t.size() - 1) / 2);
  for (std::size_t i = 0; i < t.size(); ++i)
    for (std::size_t j = i + 1; j < t.size(); ++j)
      if (t[j] > t[i]) slopes.push_back((y[j] - y[i]) / (t[j] - t[i]));
  if (slopes.empty()) return {};
  std::sort(slopes.begin(), slopes.end());
  const auto n = static_cast<double>(t.size());
  // Kendall's variance of S is n (n - 1) (2n + 5) / 18.
  const double variance = n * (n - 1) * (2 * n + 5) / 18 * (1 + autocorrelation) / (1 - autocorrelation);
  const double reach = kZ90 * std::sqrt(variance) / 2;
  const auto count = static_cast<double>(slopes.size());
  const auto at = [&](double rank) { return slopes[static_cast<std::size_t>(std::clamp(rank, 0.0, count - 1))]; };
  return {at(count / 2 - reach), at(count / 2), at(count / 2 + reach)};
}

/// Time after the last point at which the least-squares parabola through (t, y) has risen by `headroom` above its
/// value there; nullopt when its curvature is not significantly upwards.
std::optional<double> first_passage_of_parabola(const std::vector<double>& t, const std::vector<double>& y,
                                                double headroom) {
  const auto n = static_cast<double>(t.size());
  if (t.size() < kParabolaPoints) return std::nullopt;
  // Orthogonal polynomials on the given times: p1 = t - m, p2 = p1^2 - a p1 - b.
  double m = 0;
  for (const double v : t) m += v / n;
  double s2 = 0;
  double s3 = 0;
  for (const double v : t) {
    s2 += (v - m) * (v - m);
    s3 += (v - m) * (v - m) * (v - m);
  }
  if (!(s2 > 0)) return std::nullopt;
  const double a = s3 / s2;
  const double b = s2 / n;
  double mean = 0;
  for (const double v : y) mean += v / n;
  double c1 = 0;
  double c2 = 0;
  double q2 = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double p1 = t[i] - m;
    const double p2 = p1 * p1 - a * p1 - b;
    c1 += p1 * (y[i] - mean) / s2;
    c2 += p2 * (y[i] - mean);
    q2 += p2 * p2;
  }
  if (!(q2 > 0)) return std::nullopt;
  c2 /= q2;
  double rest = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double p1 = t[i] - m;
    const double r = y[i] - mean - c1 * p1 - c2 * (p1 * p1 - a * p1 - b);
    rest += r * r;
  }
  const double se = std::sqrt(rest / std::max(1.0, n - kParabolaParameters) / q2);
  if (!(c2 > kCurvatureErrors * se)) return std::nullopt;
  const double end = t.back() - m;
  const double slope = c1 + c2 * (2 * end - a);
  if (!(slope > 0)) return std::nullopt;
  return (-slope + std::sqrt(slope * slope + 4 * c2 * headroom)) / (2 * c2);
}

}  // namespace

Forecast forecast(const Scales& scales, const Evidence& window, std::optional<double> limit_bytes) {
  const Level& level = scales.level(window.level);
  const double width_s = Scales::width_s(window.level);
  std::vector<double> t;
  std::vector<double> floors;
  std::vector<double> peaks;
  for (std::size_t i = 0; i < level.size(); ++i) {
    if (scales.end_of(window.level, level[i].slot) < window.start) continue;
    t.push_back(seconds_between(window.start, scales.end_of(window.level, level[i].slot)));
    floors.push_back(static_cast<double>(level[i].floor_bytes));
    peaks.push_back(static_cast<double>(level[i].peak_bytes));
  }
  Forecast out;
  if (t.size() < kLeastPoints) return out;
  const Fit line = fit_slope(moments_of(t, floors));
  out.r_squared = line.r_squared;
  out.growth_bytes_per_s = theil_sen(t, floors, residual_autocorrelation(t, floors, line));
  const double mean_rate = window.net_bytes / window.duration_s;
  Interval& g = out.growth_bytes_per_s;
  if (!(g.mid > kTreadShare * mean_rate)) g.mid = mean_rate;
  g.low = std::min(g.low, g.mid);
  g.high = std::max(g.high, g.mid);
  if (!limit_bytes || !(g.mid > 0)) return out;

  const double headroom = std::max(0.0, *limit_bytes - window.highest_bytes);
  double squares = 0;
  double previous = 0;
  for (std::size_t i = 1; i < floors.size(); ++i) {
    const double x = floors[i] - floors[i - 1];
    if (i > 1) squares += (x - previous) * (x - previous);
    previous = x;
  }
  const double diffusion = squares / (2 * std::max<double>(1, static_cast<double>(floors.size()) - 2)) / width_s;
  const Fit peak_line = fit_slope(moments_of(t, peaks));
  double peak_squares = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double r = peak_line.residual(t[i], peaks[i]);
    peak_squares += r * r / static_cast<double>(t.size());
  }
  const double h = std::max(headroom, kLeastHeadroom * *limit_bytes);
  const double slope_ln = (g.high - g.low) / (2 * kZ90) / g.mid;
  const double drift_ln = kDriftSigma * std::log1p(h / std::max(window.net_bytes, 1.0));
  const double variance = kFloorSigma * kFloorSigma + drift_ln * drift_ln + slope_ln * slope_ln +
                          diffusion / (h * g.mid) + peak_squares / (h * h);
  const double sigma = std::min(std::sqrt(variance), kMostSigma);
  const double straight = headroom / g.mid;
  double mid = straight;
  double spread = sigma;
  if (window.centroid > kSteadyCentroid) {
    const double curved = first_passage_of_parabola(t, floors, headroom).value_or(straight);
    if (curved < straight) {
      mid = curved;
      const double model = kModelShare * std::log(straight / std::max(curved, kSoonest * straight)) / kZ90;
      spread = std::sqrt(sigma * sigma + model * model);
    }
  }
  out.oom_in_s = Interval{mid * std::exp(-kZ90 * spread), mid, mid * std::exp(kZ90 * spread)};
  return out;
}

}  // namespace vramtrack
