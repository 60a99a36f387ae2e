#include "detect/rivals.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/statistics.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

// Chance.

/// Evidence had at least this many starts: even a level that hardly moved has been examined a few times.
constexpr double kLeastStarts = 5;
/// From this many points on, Mann-Kendall's S is near enough to normal (Kendall 1975: 8 to 10; one-sided, 7 is safe).
constexpr std::size_t kNormalPoints = 7;
/// The probability taken for an order that does not rise.
constexpr double kNoOrder = 0.5;

// Steps that keep time.

/// A rise of this share of the largest is a step.
constexpr double kStepShare = 0.4;
/// With fewer steps, there are too few intervals for a deviation.
constexpr std::size_t kLeastSteps = 4;
/// Movement between the steps, as a share of their rise: with more than this, it is not a staircase.
constexpr double kMostBetween = 0.25;
/// The intervals' variance is at least the square of a tenth of their mean, ...
constexpr double kLeastVariance = 0.01;
/// ... and at least that of two ends, each rounded to a bucket: w^2 / 12 each.
constexpr double kRoundingVariance = 6;
/// One in ten programs that rise in steps does so at equal intervals, whatever else it does.
constexpr double kClockworkPrior = 10;
constexpr double kMostClockwork = 1e6;

// Growth that levels off: its centroid.

/// Standard deviation of a leak's centroid: a rate that falls linearly by half over the window has 0.44.
constexpr double kLeakSpread = 0.05;
/// Settling rises have centroids between these (log: 0.28; exponential seen for one time constant: 0.42).
constexpr double kWarmLow = 0.1;
constexpr double kWarmHigh = 0.47;
/// The edges of the uniform density are blurred by the centroid's error, and at least by this.
constexpr double kLeastBlur = 0.02;
/// The density is never taken to be below this, so that one odd centroid does not decide, ...
constexpr double kLeastWarmDensity = 0.05;
/// ... and the ratio stays between these.
constexpr double kLeastRatio = 1e-4;
constexpr double kMostRatio = 20;

// Ramps that end by themselves, and loads.

/// Durations of ramps: log-normal, median and sigma (nine in ten between one minute and 65).
constexpr double kRampMedian_s = 8 * kSecondsPerMinute;
constexpr double kRampSigma = 1.3;
/// A ramp takes between these shares of the free memory.
constexpr double kRampLeast = 0.005;
constexpr double kRampMost = 0.5;
/// The least probability that a ramp takes that long: it is never zero.
constexpr double kLeastRampShare = 0.002;
/// Ramps begin with their program: their rate falls as 1 / (1 + quiet / this), but not below kLeastRate.
constexpr double kQuietScale_s = 2 * kSecondsPerMinute;
constexpr double kLeastRate = 0.03;
/// Weight of ramps in a program of unknown age, and the additional weight in a young one.
constexpr double kRampWeight = 0.6;
constexpr double kYoungRampWeight = 5.4;
/// Leaks that would fill the memory faster than this are rarer by the square of their speed, by at most kMostFast.
constexpr double kLeakLife_s = 4 * kSecondsPerHour;
constexpr double kMostFast = 32;
/// After a quiet period, this factor counts less: its exponent is the ramps' rate to this power.
constexpr double kFastFades = 0.4;
/// Loads: weight, duration (log-normal), and the largest factor by which speed counts against a leak there.
constexpr double kLoadWeight = 2;
constexpr double kLoadMedian_s = 20;
constexpr double kLoadSigma = 1.5;
constexpr double kMostFastLoad = 8;

/// By the curve alone: a load fills at least this share of the memory in kLongestLoad_s, or the second share if the GPU
/// works meanwhile (weights are converted); ...
constexpr double kLeastLoadShare = 0.1;
constexpr double kLeastLoadAtWork = 2.0 / 3;
/// ... its stages are at least this share as fast as what came before; and kMayBeLoad of confidence waits until it is
/// over.
constexpr double kStageRate = 0.3;
/// A load with which the GPU works begins no later in its program's life than this.
constexpr double kBeforeLoad_s = 2 * kSecondsPerMinute;

// The rising half of a day's load.

/// The windows it may fill, the least life of memory at that rate; kDaySeen_s: quiet before it, which rules it out.
constexpr double kDayLeast_s = 1 * kSecondsPerHour;
constexpr double kDayMost_s = 13 * kSecondsPerHour;
constexpr double kDayLife_s = 6 * kSecondsPerHour;
/// The share of mornings among a first day's straight rises that leave memory for kDayLife_s: just more than may be
/// wrong among the confirmed. The doubt grows from kSurelyNoDay_s (half of that) on, so as not to flicker.
constexpr double kMorningDoubt = 0.06;
constexpr double kSurelyNoDay_s = kDayLife_s / 2;
constexpr double kDaySeen_s = 20 * kSecondsPerHour;
/// Centroids of the first half of a sine's rise lie between 0.5 and this.
constexpr double kDayHigh = 0.67;
constexpr double kDayWidth = 0.17;
/// From this many deviations above 0.5 on, there is a noticeable bend.
constexpr double kBend = 1;
constexpr double kDayWeight = 0.3;
constexpr double kMostDay = 0.5;
/// A leak's density is never taken to be below this, because it is a divisor.
constexpr double kLeastLeakDensity = 1e-3;

/// The centroid of a steady growth.
constexpr double kSteadyCentroid = 0.5;

/// The chance that a log-normal duration is longer.
double longer(double than_s, double median_s, double sigma) {
  return normal_cdf(-std::log(std::max(than_s, 1.0) / median_s) / sigma);
}

}  // namespace

double noise_weight(double nats, double starts) {
  return std::max(kLeastStarts, starts) * std::exp(-nats);
}

double order_by_chance(const Window& w) {
  const std::size_t points = w.last - w.first + 1;
  const std::int64_t s = kendall_score(points, [&](std::size_t i) { return w.floor_at(w.first + i); });
  if (s <= 0) return kNoOrder;
  if (points < kNormalPoints)
    return s == static_cast<std::int64_t>(points * (points - 1) / 2) ? rising_order_p(points) : kNoOrder;
  return kendall_normal_p(s, kendall_variance(static_cast<double>(points)));
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
    if (x >= kStepShare * largest) {
      at[steps++] = w.time_at(i);
      stepped += x;
    } else {
      rest += std::abs(x);
    }
  }
  // Smaller steps come from how allocators and drivers count, not from events of the program.
  if (steps < kLeastSteps || largest < least_step_bytes || rest > kMostBetween * stepped ||
      2 * steps > w.last - w.first)
    return 1;
  const auto intervals = static_cast<double>(steps - 1);
  const double mean = (at[steps - 1] - at[0]) / intervals;
  double variance = 0;
  for (std::size_t i = 1; i < steps; ++i)
    variance += (at[i] - at[i - 1] - mean) * (at[i] - at[i - 1] - mean) / intervals;
  const double width_s = Scales::width_s(w.k);
  const double deviation =
      std::sqrt(std::max({variance, kLeastVariance * mean * mean, width_s * width_s / kRoundingVariance}));
  const double each = -std::log(deviation * std::sqrt(2 * M_PI) / mean) - 0.5 * variance / (deviation * deviation) + 1;
  return std::clamp(std::exp(intervals * each - std::log(kClockworkPrior)), 1.0, kMostClockwork);
}

double going_on_ratio(double centroid, double se) {
  const double spread = std::sqrt(se * se + kLeakSpread * kLeakSpread);  // std::hypot would need glibc 2.35
  const double z = std::min(0.0, centroid - kSteadyCentroid) / spread;
  const double leak = normal_pdf(z) / spread;
  const double blur = std::max(se, kLeastBlur);
  const double warm =
      (normal_cdf((kWarmHigh - centroid) / blur) - normal_cdf((kWarmLow - centroid) / blur)) / (kWarmHigh - kWarmLow);
  return std::clamp(leak / std::max(warm, kLeastWarmDensity), kLeastRatio, kMostRatio);
}

double ramp_weight(double duration_s, std::optional<double> life_s, double quiet_s, bool young) {
  const auto ramp = [](double than_s) { return longer(than_s, kRampMedian_s, kRampSigma); };
  double share = 0;
  double fast = 1;
  double free_share = 1;  // share of loads that take more than this one has taken so far: all sizes are equally likely
  if (life_s) {
    free_share = std::max(0.0, 1 - duration_s / std::max(*life_s, 1.0));
    const double from_s = std::max(duration_s, kRampLeast * *life_s);
    share = std::max(ramp(from_s) - ramp(std::max(from_s, kRampMost * *life_s)), kLeastRampShare);
    const double ratio = std::max(1.0, kLeakLife_s / std::max(*life_s, 1.0));
    fast = std::min(ratio * ratio, kMostFast);
  } else {
    share = ramp(duration_s);
  }
  const double at_such_a_time = std::max(kLeastRate, 1 / (1 + quiet_s / kQuietScale_s));
  const double likely = kRampWeight + (young ? kYoungRampWeight * std::exp(-quiet_s / kQuietScale_s) : 0);
  const double faster = fast > 1 ? std::pow(fast, std::pow(at_such_a_time, kFastFades)) : 1;
  const double ramps = likely * at_such_a_time * share * faster;
  const double loads = kLoadWeight * longer(duration_s, kLoadMedian_s, kLoadSigma) * free_share;
  return ramps + loads * std::min(fast, kMostFastLoad);
}

double largest_fall_before(const Window& w) {
  double fall = 0;
  for (std::size_t i = w.floors.regime + 1; i <= w.first; ++i) fall = std::max(fall, w.floor_at(i - 1) - w.floor_at(i));
  return fall;
}

double day_weight(const Evidence& e, double life_s) {
  if (e.duration_s < kDayLeast_s || e.duration_s > kDayMost_s || life_s < kDayLife_s || e.quiet_s > kDaySeen_s)
    return 0;
  const double spread = std::sqrt(e.centroid_se * e.centroid_se + kLeakSpread * kLeakSpread);
  const double z = (e.centroid - kSteadyCentroid) / spread;
  if (z < kBend) return 0;
  const double leak = normal_pdf(z) / spread;
  const double blur = std::max(e.centroid_se, kLeastBlur);
  const double day =
      (normal_cdf((kDayHigh - e.centroid) / blur) - normal_cdf((kSteadyCentroid - e.centroid) / blur)) / kDayWidth;
  return std::min(kMostDay, kDayWeight * day / std::max(leak, kLeastLeakDensity));
}

double most_of_young_load(const Evidence& e, double limit_bytes, const YoungLife& life) {
  if (life.age_s > kLongestLoad_s || e.duration_s <= 0) return 1;
  const double rate_bytes_per_s = e.net_bytes / e.duration_s;
  if (rate_bytes_per_s * kLongestLoad_s < (life.works ? kLeastLoadAtWork : kLeastLoadShare) * limit_bytes) return 1;
  const double before_bytes_per_s = life.before_s > 0 ? life.before_bytes / life.before_s : 0;
  if (rate_bytes_per_s < kStageRate * before_bytes_per_s) return 1;
  // A program that has worked without loading already has its weights.
  if (life.works && life.before_s > kBeforeLoad_s && before_bytes_per_s < kStageRate * rate_bytes_per_s) return 1;
  return kMayBeLoad;
}

double most_of_first_morning(const Evidence& e, double life_s, double seen_s, ProgramKind kind) {
  if (seen_s >= kSecondsPerDay || e.duration_s > kDayMost_s || has_no_clients(kind)) return 1;
  const double day = std::clamp((life_s - kSurelyNoDay_s) / (kDayLife_s - kSurelyNoDay_s), 0.0, 1.0);
  return 1 - kMorningDoubt / e.clockwork * day;
}

}  // namespace vramtrack
