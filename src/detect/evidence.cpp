#include "detect/evidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "core/median.hpp"
#include "detect/rivals.hpp"
#include "detect/window.hpp"

namespace vramtrack {
namespace {

/// Median peak of buckets [from, to).
double median_peak(const Level& level, std::size_t from, std::size_t to) {
  std::array<float, Level::kCapacity> peaks{};
  for (std::size_t i = from; i < to; ++i) peaks[i - from] = level[i].peak_bytes;
  return static_cast<double>(upper_median(std::span(peaks).first(to - from)));
}

constexpr double kHopelessNoise = 4;  ///< noise alone four times as likely: no need to look closer

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
  e.swing_bytes = static_cast<double>(upper_median(std::span(swings).first(w.last - w.first + 1)));

  // Peaks of a steady growth rise by two thirds of the net from the first third's median to the last's.
  e.co_moving = e.peak_rise_bytes >= 0.75 * 0.66 * e.net_bytes;
  // Or the floor rises like clockwork under peaks that stand still, as under a limit at which garbage is collected;
  // dips that vanish in a rising load do so by fits and starts.
  if (!e.co_moving && e.buckets >= 8 && e.rises >= 0.85 * e.buckets && e.centroid_se <= 0.05 &&
      std::abs(e.peak_rise_bytes) <= 0.1 * e.net_bytes && e.swing_bytes >= e.net_bytes / e.buckets)
    e.co_moving = true;
}

/// How long the floor lay still before the window. A straight rise of which the window holds only the later part lies
/// within `still_bytes`, 15 % of the net, for 15 % of the window: that much, and some, is no quiet.
double quiet_before(const Window& w, const Evidence& e, double still_bytes) {
  const double seen_s = w.scales.quiet_before_s(w.k, e.start, e.start_bytes - still_bytes, e.start_bytes + still_bytes);
  return std::max(0.0, seen_s - 0.25 * e.duration_s);
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

  const double going_on = going_on_ratio(e.centroid, e.centroid_se);
  const bool spans_cycles = e.swing_bytes >= 0.5 * e.net_bytes;
  const double still_bytes = 0.15 * e.net_bytes;
  // A window that begins where the level's memory does has not seen the rise begin.
  const bool begins_in_sight = w.first > 1 || w.level.size() < Level::kCapacity;
  if (e.admissible() && begins_in_sight) e.quiet_s = quiet_before(w, e, still_bytes);
  const std::optional<double> life_s = e.oom_in_s ? std::optional(e.duration_s + *e.oom_in_s) : std::nullopt;
  e.warm_up = 0.5 / going_on;
  // A floor that lay still for three times as long as it has now risen does not wander: then a change of level is the
  // rival, after which the order of the floors is chance.
  if (e.quiet_s >= 3 * e.duration_s && e.noise > 0.02)
    e.noise = std::min(e.noise, 5 * std::max(order_by_chance(w), 1 / std::tgamma(e.rises + 1)));
  // A load was seen, then the rise: the program is young.
  const bool loaded =
      context.limit_bytes && e.start_bytes - context.first_bytes > 0.05 * (*context.limit_bytes - context.first_bytes);
  e.cycle = (spans_cycles ? 0.3 : 1.0) * ramp_weight(e.duration_s, life_s, e.quiet_s, loaded);
  // A slowing growth that settles above the limit ends there all the same.
  if (e.plateau_bytes && context.limit_bytes && *e.plateau_bytes > *context.limit_bytes)
    e.warm_up = std::min(e.warm_up, 0.3);
  if (e.admissible()) {
    e.clockwork = keeps_time(w, 0.5 * context.min_growth_bytes);
    e.noise /= e.clockwork;
    e.warm_up /= std::sqrt(e.clockwork);
    if (largest_fall_before(w) > 0.3 * e.net_bytes) e.churn = 0.4;
    if (life_s) e.day = day_weight(e, *life_s);
  }
  const double rivals = (e.noise + e.warm_up + e.cycle + e.churn + e.day) * (0.1 / std::max(context.prior_odds, 1e-6));
  e.probability = 1 / (1 + rivals);
  if (!e.admissible()) e.probability = std::min(e.probability, 0.2);

  const double wait_s =
      e.oom_in_s ? std::clamp(*e.oom_in_s, 60.0, std::max(60.0, context.min_duration_s)) : context.min_duration_s;
  // Less than a hundredth of what was free is no growth that matters; on large cards eight times the least one is.
  const double free_bytes = context.limit_bytes.value_or(e.start_bytes) - e.start_bytes;
  const double least = std::max(context.min_growth_bytes, std::min(0.01 * free_bytes, 8 * context.min_growth_bytes));
  e.material = e.duration_s >= wait_s && e.net_bytes >= least;
  return e;
}

}  // namespace

std::optional<Evidence> weigh(const Scales& scales, std::size_t k, const EvidenceContext& context) {
  const Level& level = scales.level(k);
  if (level.size() < kMinIncrements + 1) return std::nullopt;
  const std::size_t last = level.size() - 1;
  std::optional<Evidence> result;
  Starts seen;
  for (const Start& start : starts_of(level)) {
    const double nats = std::max(0.0, start.nats - std::log(static_cast<double>(kBets)));  // the bets are mixed
    if (noise_weight(nats, 0) > kHopelessNoise) continue;
    Start from = start;
    from.first = without_flat_beginning(level, start.first);
    const auto same = [&](const Start& s) { return s.first == from.first && s.bet == from.bet; };
    if (last - from.first < kMinIncrements || std::any_of(seen.begin(), seen.end(), same)) continue;
    seen.push_back(from);
    const auto moves = static_cast<double>(level.moves(from.bet));
    const auto e = weigh_window({scales, level, k, from.first, last, nats, moves}, context);
    const auto rank = [](const Evidence& of) { return std::pair(of.admissible(), of.probability); };
    if (e && (!result || rank(*e) > rank(*result))) result = e;
  }
  return result;
}

}  // namespace vramtrack
