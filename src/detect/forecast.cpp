#include "detect/forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "core/median.hpp"
#include "core/statistics.hpp"
#include "detect/kink.hpp"
#include "detect/regression.hpp"

namespace vramtrack {
namespace {

/// The residuals' autocorrelation is never taken to be higher than this: (1 + r) / (1 - r) has no upper bound.
constexpr double kMostAutocorrelation = 0.95;
/// With fewer points, nothing is forecast, or no parabola is tried.
constexpr std::size_t kLeastPoints = 3;
constexpr std::size_t kParabolaPoints = 6;
/// The curvature of a parabola must be at least this many standard errors: 1 %, two-sided.
constexpr double kCurvatureErrors = 2.6;
/// If the Theil-Sen slope is below this share of the mean rate, most pairs of floors lie on one tread of a staircase:
/// the mean rate is then the better middle.
constexpr double kTreadShare = 0.5;
// The terms of the variance of the logarithm of the time left, each as a standard deviation.
constexpr double kFloorSigma = 0.1;   ///< no forecast is better than this
constexpr double kDriftSigma = 0.15;  ///< change of rate, per e-fold of how far beyond the window one looks
constexpr double kMostSigma = 1.5;    ///< beyond this (a factor of 7 in either direction), a forecast is meaningless
/// As a divisor, headroom is never taken to be less than this share of the limit.
constexpr double kLeastHeadroom = 0.001;
/// Growth whose centroid lies above this may be accelerating; a parabola is then tried.
constexpr double kSteadyCentroid = 0.5;
/// The parabola widens the interval by half of its distance from the line's forecast, which counts as no shorter than
/// this share of the line's.
constexpr double kModelShare = 0.5;
constexpr double kSoonest = 0.1;

/// The autocorrelation of residuals, from the sums of their products at lag 1 and of their squares: within [0,
/// kMostAutocorrelation].
double clipped(double products, double squares) {
  return squares > 0 ? std::clamp(products / squares, 0.0, kMostAutocorrelation) : 0;
}

/// Lag-1 autocorrelation of the residuals.
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
  return clipped(c1, c0);
}

/// Theil-Sen slope with the interval of Sen (1968), Kendall's variance inflated for autocorrelation (Hamed & Rao 1998).
Interval theil_sen(const std::vector<double>& t, const std::vector<double>& y, double autocorrelation) {
  std::array<double, Level::kCapacity*(Level::kCapacity - 1) / 2> slopes{};  // on the stack: this runs once a minute
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < t.size(); ++i)
    for (std::size_t j = i + 1; j < t.size(); ++j)
      if (t[j] > t[i]) slopes[pairs++] = (y[j] - y[i]) / (t[j] - t[i]);
  if (pairs == 0) return {};
  const double variance =
      kendall_variance(static_cast<double>(t.size())) * (1 + autocorrelation) / (1 - autocorrelation);
  const double reach = kZ90 * std::sqrt(variance) / 2;
  const auto count = static_cast<double>(pairs);
  const auto index = [&](double rank) { return static_cast<std::size_t>(std::clamp(rank, 0.0, count - 1)); };
  // Three of some thousand slopes, in ascending order: each splits the others; the outer two leave few between them.
  const std::span<double> all(slopes.data(), pairs);
  const std::size_t middle_at = index(count / 2);
  const std::size_t low_at = index(count / 2 - reach);
  const std::size_t high_at = index(count / 2 + reach);
  const double low = nth_smallest(all, low_at);
  const double high = high_at > low_at ? nth_smallest(all.subspan(low_at + 1), high_at - low_at - 1) : low;
  if (middle_at == low_at || middle_at == high_at) return {low, middle_at == low_at ? low : high, high};
  const auto between = all.subspan(low_at + 1, high_at - low_at - 1);
  return {low, nth_smallest(between, middle_at - low_at - 1), high};
}

/// The least-squares parabola through a stretch.
struct Parabola {
  double slope_at_end = 0;
  double curvature = 0;
  double curvature_se = 0;
  double squares = 0;          ///< sum of the squared residuals
  double autocorrelation = 0;  ///< the autocorrelation of these

  [[nodiscard]] bool bends_upwards() const { return curvature > kCurvatureErrors * curvature_se; }
  /// Time after the last point at which it has risen by `headroom`; nullopt if it never does.
  [[nodiscard]] std::optional<double> first_passage(double headroom) const {
    if (!bends_upwards() || !(slope_at_end > 0)) return std::nullopt;
    return (-slope_at_end + std::sqrt(slope_at_end * slope_at_end + 4 * curvature * headroom)) / (2 * curvature);
  }
};

/// Residuals whose squares sum to at most `least_squares` are rounding errors.
std::optional<Parabola> parabola_through(const std::vector<double>& t, const std::vector<double>& y,
                                         double least_squares) {
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
  double squares = 0;
  double products = 0;
  double previous = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double p1 = t[i] - m;
    const double r = y[i] - mean - c1 * p1 - c2 * (p1 * p1 - a * p1 - b);
    squares += r * r;
    products += r * previous;
    previous = r;
  }
  const double end = t.back() - m;
  const double variance = std::max(squares, least_squares) / std::max(1.0, n - kParabolaParameters);
  return Parabola{c1 + c2 * (2 * end - a), c2, std::sqrt(variance / q2), squares, clipped(products, squares)};
}

/// Floors and peaks of the window's buckets, by the seconds since its start. Bytes are counted from the first floor:
/// at any level, sums over them then round alike, and ties are decided alike.
struct Stretch {
  std::vector<double> t, floors, peaks;

  void drop_first(std::size_t count) {
    for (std::vector<double>* values : {&t, &floors, &peaks})
      values->erase(values->begin(), values->begin() + static_cast<std::ptrdiff_t>(count));
  }
};

Stretch stretch_of(const Scales& scales, const Evidence& window) {
  const Level& level = scales.level(window.level);
  Stretch out;
  double base = 0;
  for (std::size_t i = 0; i < level.size(); ++i) {
    if (scales.end_of(window.level, level[i].slot) < window.start) continue;
    if (out.t.empty()) base = static_cast<double>(level[i].floor_bytes);
    out.t.push_back(seconds_between(window.start, scales.end_of(window.level, level[i].slot)));
    out.floors.push_back(static_cast<double>(level[i].floor_bytes) - base);
    out.peaks.push_back(static_cast<double>(level[i].peak_bytes) - base);
  }
  return out;
}

/// The result of most_left_of_slowing() for one stretch. Of the curvatures that the residuals allow, the least; the
/// residuals are correlated.
std::optional<double> most_left(const std::vector<double>& t, const std::vector<double>& floors, double rounding) {
  const auto parabola = parabola_through(t, floors, static_cast<double>(t.size()) * rounding * rounding);
  if (!parabola) return std::nullopt;
  const double correlated = std::sqrt((1 + parabola->autocorrelation) / (1 - parabola->autocorrelation));
  const double bend = -parabola->curvature - kCurvatureErrors * correlated * parabola->curvature_se;
  const double half_s = (t.back() - t.front()) / 2;
  const double middle = parabola->slope_at_end - 2 * half_s * parabola->curvature;
  const double early = middle + half_s * bend;  // the rates of the two halves
  const double late = std::max(0.0, middle - half_s * bend);
  if (!(bend > 0) || !(early > 0)) return std::nullopt;
  // An exponential rises in each half by the same share of what it rose in the half before.
  return half_s * late * late / (early - late);
}

struct KinkTime {
  double time_s = 0;   ///< since the window's start
  bool stood = false;  ///< before it, the floor practically stood still
};

/// A window may reach back beyond the moment at which the growth began. A parabola takes such a kink for acceleration
/// and ends too soon; a straight line ends too late. The part before the kink is excluded if a broken line explains
/// the floors better than both. nullopt if there is no kink.
std::optional<KinkTime> leave_out_what_is_before_a_kink(Stretch& stretch, double least_squares) {
  const auto kink = broken_line(stretch.t, stretch.floors);
  // A change of rate that even the narrowest interval of a forecast covers is not a kink.
  const double least_change = std::exp(kZ90 * kFloorSigma);
  if (!kink || !(kink->late_slope_per_s > least_change * std::max(kink->early_slope_per_s, 0.0))) return std::nullopt;
  const Fit line = fit_slope(moments_of(stretch.t, stretch.floors));
  double line_squares = 0;
  for (std::size_t i = 0; i < stretch.t.size(); ++i) {
    const double r = line.residual(stretch.t[i], stretch.floors[i]);
    line_squares += r * r;
  }
  const std::size_t n = stretch.t.size();
  if (!explains_better(kink->squares, line_squares, least_squares, n, kKinkParameters - kLineParameters))
    return std::nullopt;
  const auto parabola = parabola_through(stretch.t, stretch.floors, least_squares);
  if (parabola &&
      !explains_better(kink->squares, parabola->squares, least_squares, n, kKinkParameters - kParabolaParameters))
    return std::nullopt;
  const double time_s = stretch.t[kink->at];
  const double before = kink->early_slope_per_s * (time_s - stretch.t.front());
  const bool stood = before <= kStandShare * (stretch.floors.back() - stretch.floors.front());
  // The growth began in a bucket next to this point: if there are enough others, it is not used for the rate.
  stretch.drop_first(kink->at + (n - kink->at > kLeastPoints ? 1 : 0));
  return KinkTime{time_s, stood};
}

}  // namespace

bool bends(const std::vector<double>& t, const std::vector<double>& y, double rounding) {
  const double least_squares = static_cast<double>(t.size()) * rounding * rounding;
  const auto parabola = parabola_through(t, y, least_squares);
  if (!parabola) return false;
  const Fit line = fit_slope(moments_of(t, y));
  double squares = 0;
  for (std::size_t i = 0; i < t.size(); ++i) squares += line.residual(t[i], y[i]) * line.residual(t[i], y[i]);
  return explains_better(parabola->squares, squares, least_squares, t.size(), kParabolaParameters - kLineParameters);
}

std::optional<double> most_left_of_slowing(const Scales& scales, const Evidence& window) {
  Stretch stretch = stretch_of(scales, window);
  const double rounding = kRoundingShare * window.net_bytes;
  const auto whole = most_left(stretch.t, stretch.floors, rounding);
  stretch.drop_first(stretch.t.size() / 2);
  const auto half = most_left(stretch.t, stretch.floors, rounding);
  return whole && half ? std::optional(std::max(*whole, *half)) : std::nullopt;
}

Forecast forecast(const Scales& scales, const Evidence& window, std::optional<double> limit_bytes) {
  const double width_s = Scales::width_s(window.level);
  Stretch stretch = stretch_of(scales, window);
  Forecast out;
  if (stretch.t.size() < kLeastPoints) return out;
  const double rounding = kRoundingShare * window.net_bytes;
  const double least_squares = static_cast<double>(stretch.t.size()) * rounding * rounding;
  const auto kink = leave_out_what_is_before_a_kink(stretch, least_squares);
  const auto& [t, floors, peaks] = stretch;
  if (kink) {
    out.rate_for_s = t.back() - kink->time_s;
    if (kink->stood) out.begins_s = kink->time_s;
  }
  const Fit line = fit_slope(moments_of(t, floors));
  out.r_squared = line.r_squared;
  out.growth_bytes_per_s = theil_sen(t, floors, residual_autocorrelation(t, floors, line));
  // The whole window's own duration accounts for where in its first bucket the growth began.
  const double mean_rate =
      kink ? (floors.back() - floors.front()) / (t.back() - t.front()) : window.net_bytes / window.duration_s;
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
    const auto parabola = parabola_through(t, floors, least_squares);
    const double curved = parabola ? parabola->first_passage(headroom).value_or(straight) : straight;
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
