#include "detect/evidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace vramtrack {
namespace {

constexpr std::size_t kMinIncrements = 6;

/// Durations of healthy rises (loads, warm-ups, ramps up to a garbage collection) are taken as
/// log-uniform between ten seconds and `longest_s`: the share that lasts longer than `duration_s`.
double survival(double duration_s, double longest_s) {
  constexpr double kShortest = 10;
  const double share = std::log(longest_s / std::max(duration_s, kShortest)) / std::log(longest_s / kShortest);
  return std::clamp(share, 0.02, 1.0);
}

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

float median_of(std::span<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median peak of buckets [from, to).
double median_peak(const Level& level, std::size_t from, std::size_t to) {
  std::array<float, Level::kCapacity> peaks{};
  for (std::size_t i = from; i < to; ++i) peaks[i - from] = level[i].peak_bytes;
  return static_cast<double>(median_of(std::span(peaks).first(to - from)));
}

/// Likelihood ratio, growth that goes on against growth that settles, of the growth's centroid. A leak's
/// rate follows the load, which drifts: standard deviation 0.05 of the centroid (a rate falling linearly by
/// half over the window). Saturating rises have centroids anywhere from 0.1 to 0.5 (log: 0.28, sqrt: 0.33,
/// exponential seen for one time constant: 0.42, for two: 0.34).
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

/// Chance that driftless increments would have produced such evidence from one of their starts, as a weight
/// against a leak's 1.
double noise_weight(double nats, double starts) {
  return std::max(5.0, starts) * std::exp(-nats);
}

constexpr double kHopelessNoise = 4;  ///< noise alone four times as likely: no need to look closer

struct Window {
  const Scales& scales;
  const Level& level;
  std::size_t k;
  std::size_t first;  ///< index of the base bucket
  std::size_t last;
  double nats;
  double starts;  ///< at which evidence of this scale could have begun

  [[nodiscard]] double floor_at(std::size_t i) const { return static_cast<double>(level[i].floor_bytes); }
  [[nodiscard]] double time_at(std::size_t i) const {
    return static_cast<double>(level[i].slot - level[first].slot) * Scales::width_s(k);
  }
};

/// Growth's centroid, its standard error, new highs and their gaps.
void measure(const Window& w, Evidence& e) {
  const double inv_net = 1 / e.net_bytes;
  const double inv_d = 1 / e.duration_s;
  double weighted = 0;
  double successive = 0;
  double previous = 0;
  double high = w.floor_at(w.first);
  double high_at = 0;
  double largest = 0;
  for (std::size_t i = w.first + 1; i <= w.last; ++i) {
    const double x = w.floor_at(i) - w.floor_at(i - 1);
    const double t = w.time_at(i);
    weighted += x * 0.5 * (t + w.time_at(i - 1)) * inv_d;
    if (i > w.first + 1) successive += (x - previous) * (x - previous);
    previous = x;
    largest = std::max(largest, x);
    if (w.floor_at(i) > high) {
      high = w.floor_at(i);
      e.longest_gap_s = std::max(e.longest_gap_s, t - high_at);
      high_at = t;
      ++e.rises;
    }
  }
  const auto n = static_cast<double>(w.last - w.first);
  e.centroid = weighted * inv_net;
  // Von Neumann: the successive differences tell the increments' noise from a smooth change of rate.
  const double variance = successive / (2 * std::max(1.0, n - 1));
  e.centroid_se = std::sqrt(variance * n / 12) * inv_net;
  e.since_high_s = e.duration_s - high_at;
  e.largest_step = largest * inv_net;
}

/// Peaks' rise, first third to last; the swing within a bucket; the highest peak of late. The dear part.
void compare_peaks(const Window& w, Evidence& e) {
  const std::size_t third = std::max<std::size_t>(1, (w.last - w.first + 1) / 3);
  e.highest_bytes = median_peak(w.level, w.last + 1 - third, w.last + 1);
  e.peak_rise_bytes = e.highest_bytes - median_peak(w.level, w.first, w.first + third);
  for (std::size_t i = w.last + 1 - third; i <= w.last; ++i)
    e.highest_bytes = std::max(e.highest_bytes, static_cast<double>(w.level[i].peak_bytes));
  std::array<float, Level::kCapacity> swings{};
  for (std::size_t i = w.first; i <= w.last; ++i) swings[i - w.first] = w.level[i].peak_bytes - w.level[i].floor_bytes;
  e.swing_bytes = static_cast<double>(median_of(std::span(swings).first(w.last - w.first + 1)));

  // Peaks of a steady growth rise by two thirds of the net from the first third's median to the last's.
  e.co_moving = e.peak_rise_bytes >= 0.75 * 0.66 * e.net_bytes;
}

std::optional<Evidence> weigh_window(const Window& w, const EvidenceContext& context) {
  Evidence e;
  e.level = w.k;
  e.start_bytes = w.floor_at(w.first);
  e.net_bytes = w.floor_at(w.last) - e.start_bytes;
  e.duration_s = w.time_at(w.last);
  if (!(e.net_bytes > 0) || !(e.duration_s > 0)) return std::nullopt;
  e.start = w.scales.end_of(w.k, w.level[w.first].slot);
  e.end = w.scales.end_of(w.k, w.level[w.last].slot);
  e.buckets = static_cast<int>(w.last - w.first);
  e.nats = w.nats;
  measure(w, e);

  auto seen = static_cast<double>(w.level.forgotten_floor());
  for (std::size_t i = 0; i < w.first; ++i) seen = std::max(seen, w.floor_at(i));
  e.new_high = seen <= e.start_bytes + 0.75 * e.net_bytes;
  e.stopped = e.since_high_s > 3 * std::max(e.longest_gap_s, Scales::width_s(w.k));
  e.noise = noise_weight(e.nats, w.starts);
  if (e.new_high && !e.stopped)
    compare_peaks(w, e);
  else
    e.highest_bytes = static_cast<double>(w.level[w.last].peak_bytes);

  const std::size_t middle = (w.first + w.last) / 2;
  const double half_s = w.time_at(w.last) - w.time_at(middle);
  e.recent_rate_bytes_per_s = half_s > 0 ? (w.floor_at(w.last) - w.floor_at(middle)) / half_s : 0;
  const double rate = e.net_bytes / e.duration_s;
  if (context.limit_bytes) e.oom_in_s = std::max(0.0, *context.limit_bytes - e.highest_bytes) / rate;
  // Aitken: three equal spans' rises d1, d2, d3 of a geometric approach settle at m + d3 r / (1 - r), r = d3 / d2.
  const std::size_t t1 = w.first + (w.last - w.first) / 3;
  const std::size_t t2 = w.first + 2 * (w.last - w.first) / 3;
  const double d2 = w.floor_at(t2) - w.floor_at(t1);
  const double d3 = w.floor_at(w.last) - w.floor_at(t2);
  if (d3 >= 0 && d2 > 0 && d3 < 0.95 * d2) e.plateau_bytes = w.floor_at(w.last) + d3 * (d3 / d2) / (1 - d3 / d2);

  constexpr double kLongestRamp = 3 * 3600.0;
  const double going_on = going_on_ratio(e.centroid, e.centroid_se);
  const bool spans_cycles = e.swing_bytes >= 0.5 * e.net_bytes;
  e.warm_up = 0.5 / going_on;
  e.cycle = (spans_cycles ? 0.2 : 0.7) * survival(e.duration_s, kLongestRamp);
  // A slowing growth that settles above the limit ends there all the same.
  if (e.plateau_bytes && context.limit_bytes && *e.plateau_bytes > *context.limit_bytes)
    e.warm_up = std::min(e.warm_up, 0.3);
  const double rivals = (e.noise + e.warm_up + e.cycle) * (0.1 / std::max(context.prior_odds, 1e-6));
  e.probability = 1 / (1 + rivals);
  if (!e.admissible()) e.probability = std::min(e.probability, 0.2);

  const double wait_s =
      e.oom_in_s ? std::clamp(*e.oom_in_s, 60.0, std::max(60.0, context.min_duration_s)) : context.min_duration_s;
  e.material = e.duration_s >= wait_s && e.net_bytes >= context.min_growth_bytes;
  return e;
}

}  // namespace

std::optional<Evidence> weigh(const Scales& scales, std::size_t k, const EvidenceContext& context) {
  const Level& level = scales.level(k);
  const std::size_t n = level.size();
  if (n < kMinIncrements + 1) return std::nullopt;
  const std::size_t last = n - 1;
  const auto hopeless = [&](std::size_t scale) {
    return noise_weight(static_cast<double>(level.drift().log_e[scale]) - std::log(2.0),
                        static_cast<double>(level.moves(scale))) > kHopelessNoise;
  };
  if (hopeless(0) && hopeless(1)) return std::nullopt;

  // The best start at each of the two scales: the suffix with the largest evidence.
  struct Start {
    std::size_t first = 0;
    std::size_t scale = 0;
    double nats = 0;
  };
  std::array<Start, 4> starts{};
  std::size_t count = 0;
  const auto suffix_from = [&](std::size_t first, std::size_t scale) {
    double sum = 0;
    for (std::size_t i = first + 1; i <= last; ++i) sum += static_cast<double>(level[i].gain_nats[scale]);
    return sum;
  };
  for (std::size_t scale = 0; scale < 2; ++scale) {
    double sum = 0;
    Start best{last, scale, 0};
    for (std::size_t i = last; i > 0; --i) {
      sum += static_cast<double>(level[i].gain_nats[scale]);
      if (sum > best.nats) best = {i - 1, scale, sum};
    }
    if (last - best.first >= kMinIncrements) starts[count++] = best;
  }
  if (count == 0) return std::nullopt;

  // One large jump (a model load) would hide what came after it: also look from there.
  const std::size_t from = starts[0].first;
  std::size_t jump = from + 1;
  for (std::size_t i = from + 1; i <= last; ++i)
    if (level[i].floor_bytes - level[i - 1].floor_bytes > level[jump].floor_bytes - level[jump - 1].floor_bytes)
      jump = i;
  const double net = static_cast<double>(level[last].floor_bytes - level[from].floor_bytes);
  const double step = static_cast<double>(level[jump].floor_bytes - level[jump - 1].floor_bytes);
  if (step > 0.3 * net && last - jump >= kMinIncrements)
    for (std::size_t scale = 0; scale < 2; ++scale) starts[count++] = {jump, scale, suffix_from(jump, scale)};

  std::optional<Evidence> result;
  std::array<std::size_t, 4> weighed{};
  std::size_t weighed_count = 0;
  for (std::size_t c = 0; c < count; ++c) {
    const double nats = std::max(0.0, starts[c].nats - std::log(2.0));  // two scales, mixed
    const auto begun = static_cast<double>(level.moves(starts[c].scale));
    if (noise_weight(nats, begun) > kHopelessNoise) continue;
    std::size_t first = starts[c].first;
    const double base = static_cast<double>(level[first].floor_bytes);
    const double rise = static_cast<double>(level[last].floor_bytes) - base;
    // Flat buckets before the growth began are not part of it.
    for (std::size_t i = last; i > first; --i)
      if (static_cast<double>(level[i].floor_bytes) <= base + 0.02 * rise) {
        first = i;
        break;
      }
    if (last - first < kMinIncrements) continue;
    const auto done = weighed.begin() + static_cast<std::ptrdiff_t>(weighed_count);
    if (std::find(weighed.begin(), done, 2 * first + starts[c].scale) != done) continue;
    weighed[weighed_count++] = 2 * first + starts[c].scale;
    const auto e = weigh_window({scales, level, k, first, last, nats, begun}, context);
    if (e && (!result || e->probability > result->probability)) result = e;
  }
  return result;
}

}  // namespace vramtrack
