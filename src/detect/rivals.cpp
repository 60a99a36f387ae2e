#include "detect/rivals.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace vramtrack {
namespace {

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

/// Chance that a log-normal duration is longer.
double longer(double than_s, double median_s, double sigma) {
  return 1 - normal_cdf(std::log(std::max(than_s, 1.0) / median_s) / sigma);
}

}  // namespace

double noise_weight(double nats, double starts) {
  return std::max(5.0, starts) * std::exp(-nats);
}

double order_by_chance(const Window& w) {
  const std::size_t points = w.last - w.first + 1;
  const auto n = static_cast<double>(points);
  double s = 0;
  for (std::size_t i = w.first; i < w.last; ++i)
    for (std::size_t j = i + 1; j <= w.last; ++j) {
      const float a = w.level[i].floor_bytes;
      const float b = w.level[j].floor_bytes;
      s += a < b ? 1 : a > b ? -1 : 0;
    }
  if (s <= 0) return 0.5;
  if (points < 7) return s >= n * (n - 1) / 2 ? 1 / std::tgamma(n + 1) : 0.5;
  return 1 - normal_cdf((s - 1) / std::sqrt(n * (n - 1) * (2 * n + 5) / 18));
}

double keeps_time(const Window& w, double least_step_bytes) {
  std::array<double, Level::kCapacity> at{};
  double largest = 0;
  for (std::size_t i = w.first + 1; i <= w.last; ++i) largest = std::max(largest, w.floor_at(i) - w.floor_at(i - 1));
  std::size_t steps = 0;
  double stepped = 0;
  double rest = 0;
  for (std::size_t i = w.first + 1; i <= w.last; ++i) {
    const double x = w.floor_at(i) - w.floor_at(i - 1);
    if (x >= 0.4 * largest) {
      at[steps++] = w.time_at(i);
      stepped += x;
    } else {
      rest += std::abs(x);
    }
  }
  // Smaller steps are how allocators and drivers count, not events of the program.
  if (steps < 4 || largest < least_step_bytes || rest > 0.25 * stepped || 2 * steps > w.last - w.first) return 1;
  const auto intervals = static_cast<double>(steps - 1);
  const double mean = (at[steps - 1] - at[0]) / intervals;
  double variance = 0;
  for (std::size_t i = 1; i < steps; ++i)
    variance += (at[i] - at[i - 1] - mean) * (at[i] - at[i - 1] - mean) / intervals;
  const double width_s = Scales::width_s(w.k);
  const double deviation = std::sqrt(std::max({variance, 0.01 * mean * mean, width_s * width_s / 6}));
  const double each = -std::log(deviation * std::sqrt(2 * M_PI) / mean) - 0.5 * variance / (deviation * deviation) + 1;
  return std::clamp(std::exp(intervals * each - std::log(10.0)), 1.0, 1e6);
}

double going_on_ratio(double centroid, double se) {
  constexpr double kLeakSpread = 0.05;
  constexpr double kWarmLow = 0.1;
  constexpr double kWarmHigh = 0.47;
  const double spread = std::sqrt(se * se + kLeakSpread * kLeakSpread);  // std::hypot would need glibc 2.35
  const double z = std::min(0.0, centroid - 0.5) / spread;
  const double leak = std::exp(-0.5 * z * z) / (spread * std::sqrt(2 * M_PI));
  const double blur = std::max(se, 0.02);
  const double warm =
      (normal_cdf((kWarmHigh - centroid) / blur) - normal_cdf((kWarmLow - centroid) / blur)) / (kWarmHigh - kWarmLow);
  return std::clamp(leak / std::max(warm, 0.05), 1e-4, 20.0);
}

double ramp_weight(double duration_s, std::optional<double> life_s, double quiet_s, bool young) {
  constexpr double kLeakLife = 4 * 3600.0;
  const auto ramp = [](double than_s) { return longer(than_s, 480, 1.3); };
  double share = ramp(duration_s);
  double fast = 1;
  if (life_s) {
    const double from_s = std::max(duration_s, 0.05 * *life_s);
    share = std::max(ramp(from_s) - ramp(std::max(from_s, 0.5 * *life_s)), 0.002);
    const double ratio = std::max(1.0, kLeakLife / std::max(*life_s, 1.0));
    fast = std::min(ratio * ratio, 32.0);
  }
  const double at_such_a_time = std::max(0.03, 1 / (1 + quiet_s / 120));
  const double likely = 0.6 + (young ? 5.4 * std::exp(-quiet_s / 120) : 0);
  const double ramps = likely * at_such_a_time * share * std::pow(fast, std::pow(at_such_a_time, 0.4));
  return ramps + 2 * longer(duration_s, 20, 1.5) * std::min(fast, 8.0);
}

double largest_fall_before(const Window& w) {
  double fall = 0;
  for (std::size_t i = 1; i <= w.first; ++i) fall = std::max(fall, w.floor_at(i - 1) - w.floor_at(i));
  return fall;
}

double day_weight(const Evidence& e, double life_s) {
  if (e.duration_s < 3600 || e.duration_s > 13 * 3600.0 || life_s < 6 * 3600.0 || e.quiet_s > 20 * 3600.0) return 0;
  const double spread = std::sqrt(e.centroid_se * e.centroid_se + 0.05 * 0.05);
  const double z = (e.centroid - 0.5) / spread;
  if (z < 1) return 0;  // no bend to speak of
  const double leak = std::exp(-0.5 * z * z) / (spread * std::sqrt(2 * M_PI));
  const double blur = std::max(e.centroid_se, 0.02);
  const double day = (normal_cdf((0.67 - e.centroid) / blur) - normal_cdf((0.5 - e.centroid) / blur)) / 0.17;
  return std::min(0.5, 0.3 * day / std::max(leak, 1e-3));
}

}  // namespace vramtrack
