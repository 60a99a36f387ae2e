#include "detect/evidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "core/median.hpp"
#include "core/statistics.hpp"
#include "core/units.hpp"
#include "detect/rivals.hpp"
#include "detect/window.hpp"

namespace vramtrack {
namespace {

// Which windows are examined.

/// A uniform distribution of width 1 has the variance 1 / 12, as do the times of n increments in the window.
constexpr double kUniformVariance = 12;
/// The bets are mixed: each has a third of the evidence.
const double kMixed = std::log(static_cast<double>(kBets));
/// Windows in which chance weighs more than this are skipped: it is then four times as likely as a leak.
constexpr double kHopelessNoise = 4;
/// Peaks are compared, and settling is judged, by thirds of the window: the fewest parts that can show a bend.
constexpr std::size_t kThirds = 3;

// The gates.

/// The peaks of a steady growth rise by two thirds of the net from the median of the first third to that of the last;
/// peaks move along when they rise by three quarters of that.
constexpr double kSteadyPeakRise = 0.66;
constexpr double kCoMovingShare = 0.75;
/// Peaks may also stand still under a limit at which garbage is collected, while the floor rises like clockwork: over
/// at least this many buckets, with this share of them new highs, a centroid known this precisely, and peaks that moved
/// by no more than a tenth of the net. When dips vanish in a rising load, they do so irregularly.
constexpr int kClockworkBuckets = 8;
constexpr double kClockworkRises = 0.85;
constexpr double kClockworkSe = 0.05;
constexpr double kStillPeaks = 0.1;
/// New territory: nothing before the window was higher than its start plus this share of its rise. The share is more
/// than half, so that a growth that was interrupted once still counts.
constexpr double kSeenShare = 0.75;
/// A window that fails a gate gets no higher probability than this.
constexpr double kMostInadmissible = 0.2;

// Quiet before the growth.

/// A floor is flat while it stays within this share of the net.
constexpr double kStillShare = 0.15;
/// When a window contains only the later part of a straight rise, the floor before it stays that flat for 15 % of the
/// window. Up to this share of the window, with some margin, is therefore not counted as quiet.
constexpr double kSeemingQuiet = 0.25;
/// A floor that was flat for this many times as long as it has now risen is not wandering: the rival is then a change
/// of level, after which the order of the floors is chance.
constexpr double kLongQuiet = 3;
/// If chance weighs less than this, that second look changes nothing.
constexpr double kSlightNoise = 0.02;
/// The order of the floors, and steps at equal intervals, divide chance by no more than this. Both treat each floor as
/// a separate event, but three arriving jobs that spread over 25 buckets are only three events.
constexpr double kMostByOrder = 5;
constexpr double kMostByClockwork = 20;
/// Weight of a change of level per unit of the probability of the floors' order: the least number of starts, as in
/// noise_weight().
constexpr double kLevelChanges = 5;

// Settling.

/// The rises of three equal spans extrapolate to a plateau when the third is below this share of the second; with a
/// share nearer to 1, the plateau could be anywhere.
constexpr double kSlowing = 0.95;
/// Weight of a rise that settles, before its centroid is considered.
constexpr double kWarmUpWeight = 0.5;
/// The most that it weighs if its plateau lies above the limit: memory runs out there all the same.
constexpr double kWarmUpBeyondLimit = 0.3;

// Ramps, churn, steps.

/// Buckets span cycles when the swing within one is this share of the net; kCyclesRamp then scales the ramps' weight.
constexpr double kSpanningSwing = 0.5;
constexpr double kCyclesRamp = 0.3;
/// A program is young when a load was seen before the rise: this share of what was free when it was first seen.
constexpr double kLoadedShare = 0.05;
/// If the floor fell by this share of the net before the window, jobs come and go here; they have this weight.
constexpr double kChurnFall = 0.3;
constexpr double kChurnWeight = 0.4;
/// From this share of min-growth-mb on, steps count as events of the program.
constexpr double kStepShare = 0.5;

// The prior, and which growth is material.

/// The leak-prior for which the weights were chosen, and the least prior that is used as a divisor.
constexpr double kNeutralPrior = 0.1;
constexpr double kLeastPrior = 1e-6;
/// A growth must last for minimum-duration-minutes, or for as long as memory does if that is less, but at least this.
constexpr double kLeastDuration_s = kSecondsPerMinute;
/// Growth below this share of what was free is not material, unless it is at least this many times min-growth-mb.
constexpr double kMaterialShare = 0.01;
constexpr double kMaterialMost = 8;

/// Median peak of buckets [from, to).
double median_peak(const Level& level, std::size_t from, std::size_t to) {
  std::array<float, Level::kCapacity> peaks{};
  for (std::size_t i = from; i < to; ++i) peaks[i - from] = level[i].peak_bytes;
  return static_cast<double>(upper_median(std::span(peaks).first(to - from)));
}

/// Measures the growth's centroid, its standard error, new highs and the gaps between them.
void measure(const Window& w, Evidence& e) {
  const double inv_net = 1 / e.net_bytes;
  const double inv_d = 1 / e.duration_s;
  double weighted = 0;
  double successive = 0;
  double previous = 0;
  double floor = w.floor_at(w.first);
  double high = floor;
  double before = 0;
  double high_at = 0;
  double largest = 0;
  for (std::size_t i = w.first + 1; i <= w.last; ++i) {
    const double x = w.floor_at(i) - floor;
    const double t = w.time_at(i);
    floor = w.floor_at(i);
    weighted += x * 0.5 * (t + before) * inv_d;
    before = t;
    if (i > w.first + 1) successive += (x - previous) * (x - previous);
    previous = x;
    largest = std::max(largest, x);
    if (floor > high) {
      high = floor;
      e.longest_gap_s = std::max(e.longest_gap_s, t - high_at);
      high_at = t;
      ++e.rises;
    }
  }
  const auto n = static_cast<double>(w.last - w.first);
  e.centroid = weighted * inv_net;
  // Von Neumann: the successive differences separate the increments' noise from a smooth change of rate.
  const double variance = successive / (2 * std::max(1.0, n - 1));
  e.centroid_se = std::sqrt(variance * n / kUniformVariance) * inv_net;
  e.since_high_s = e.duration_s - high_at;
  e.largest_step = largest * inv_net;
}

/// Measures the peaks' rise, first third to last; the swing within a bucket; the highest recent peak. Expensive.
void compare_peaks(const Window& w, Evidence& e) {
  const std::size_t third = std::max<std::size_t>(1, (w.last - w.first + 1) / kThirds);
  e.highest_bytes = median_peak(w.level, w.last + 1 - third, w.last + 1);
  e.peak_rise_bytes = e.highest_bytes - median_peak(w.level, w.first, w.first + third);
  for (std::size_t i = w.last + 1 - third; i <= w.last; ++i)
    e.highest_bytes = std::max(e.highest_bytes, static_cast<double>(w.level[i].peak_bytes));
  std::array<float, Level::kCapacity> swings{};
  for (std::size_t i = w.first; i <= w.last; ++i) swings[i - w.first] = w.level[i].peak_bytes - w.level[i].floor_bytes;
  e.swing_bytes = static_cast<double>(upper_median(std::span(swings).first(w.last - w.first + 1)));

  e.co_moving = e.peak_rise_bytes >= kCoMovingShare * kSteadyPeakRise * e.net_bytes;
  if (!e.co_moving && e.buckets >= kClockworkBuckets && e.rises >= kClockworkRises * e.buckets &&
      e.centroid_se <= kClockworkSe && std::abs(e.peak_rise_bytes) <= kStillPeaks * e.net_bytes &&
      e.swing_bytes >= e.net_bytes / e.buckets)
    e.co_moving = true;
}

/// The highest level before the window that counts against its rise.
double seen_before(const Window& w, const Evidence& e) {
  const Regimes& regimes = w.level.regimes();
  double seen = std::max(static_cast<double>(w.level.forgotten_floor()), regimes.held_against(e.buckets));
  for (std::size_t i = w.floors.regime; i < w.first; ++i) seen = std::max(seen, w.floor_at(i));
  return seen;
}

/// How long the floor was flat before the window.
double quiet_before(const Window& w, const Evidence& e) {
  const double still_bytes = kStillShare * e.net_bytes;
  const double seen_s = w.scales.quiet_before_s(w.k, e.start, e.start_bytes - still_bytes, e.start_bytes + still_bytes);
  return std::max(0.0, seen_s - kSeemingQuiet * e.duration_s);
}

/// The first bucket that begins at `time` or later: the one that contains it also contains what was before, such as a
/// load. nullopt if too few follow for a window.
std::optional<std::size_t> bucket_from(const Scales& scales, std::size_t k, Timestamp time) {
  const Level& level = scales.level(k);
  std::size_t first = 0;
  while (first < level.size() && scales.start_of(k, level[first].slot) < time) ++first;
  if (first + kMinIncrements >= level.size()) return std::nullopt;
  return first;
}

/// Where a window rises, and whether it passes the gates; nullopt if it does not rise.
std::optional<Evidence> rise_of(const Window& w) {
  Evidence e;
  e.level = w.k;
  e.start_bytes = w.floor_at(w.first);
  e.net_bytes = w.floor_at(w.last) - e.start_bytes;
  e.duration_s = w.time_at(w.last);
  if (!(e.net_bytes > 0) || !(e.duration_s > 0)) return std::nullopt;
  e.start = w.scales.end_of(w.k, w.level[w.first].slot);
  e.end = w.scales.end_of(w.k, w.level[w.last].slot);
  e.buckets = static_cast<int>(w.last - w.first);
  measure(w, e);

  const double seen = seen_before(w, e);
  // A window in which the floor fell by a fifth does not contain a single rise.
  const bool fell = w.first < w.floors.regime;
  e.new_high = !fell && seen - e.start_bytes <= kSeenShare * e.net_bytes;
  e.stopped = e.since_high_s > kStoppedGaps * std::max(e.longest_gap_s, Scales::width_s(w.k));
  if (e.new_high && !e.stopped)
    compare_peaks(w, e);
  else
    e.highest_bytes = static_cast<double>(w.level[w.last].peak_bytes);
  return e;
}

/// Weighs the other explanations of the rise `e`, except for chance: they are the same for each bet.
void weigh_rivals(const Window& w, const EvidenceContext& context, Evidence& e) {
  const double rate = e.net_bytes / e.duration_s;
  if (context.limit_bytes) e.oom_in_s = std::max(0.0, *context.limit_bytes - e.highest_bytes) / rate;
  // Aitken: if three equal spans rise by d1, d2, d3 geometrically, they settle at m + d3 r / (1 - r), r = d3 / d2.
  const std::size_t t1 = w.first + (w.last - w.first) / kThirds;
  const std::size_t t2 = w.first + 2 * (w.last - w.first) / kThirds;
  const double d2 = w.floor_at(t2) - w.floor_at(t1);
  const double d3 = w.floor_at(w.last) - w.floor_at(t2);
  if (d3 >= 0 && d2 > 0 && d3 < kSlowing * d2) e.plateau_bytes = w.floor_at(w.last) + d3 * (d3 / d2) / (1 - d3 / d2);

  const double going_on = going_on_ratio(e.centroid, e.centroid_se);
  const bool spans_cycles = e.swing_bytes >= kSpanningSwing * e.net_bytes;
  // A window that begins where the level's memory begins has not seen the start of the rise.
  const bool begins_in_sight = w.first > 1 || w.level.size() < Level::kCapacity;
  if (e.admissible() && begins_in_sight) e.quiet_s = quiet_before(w, e);
  const std::optional<double> life_s = e.oom_in_s ? std::optional(e.duration_s + *e.oom_in_s) : std::nullopt;
  e.warm_up = kWarmUpWeight / going_on;
  // What follows a load at a rate of its own is not the ramp with which the program began.
  const bool follows = context.regime && e.start >= *context.regime;
  const bool young = !follows && context.limit_bytes &&
                     e.start_bytes - context.first_bytes > kLoadedShare * (*context.limit_bytes - context.first_bytes);
  e.cycle = (spans_cycles ? kCyclesRamp : 1.0) * ramp_weight(e.duration_s, life_s, e.quiet_s, young);
  if (e.plateau_bytes && context.limit_bytes && *e.plateau_bytes > *context.limit_bytes)
    e.warm_up = std::min(e.warm_up, kWarmUpBeyondLimit);
  if (e.admissible()) {
    e.clockwork = std::min(kMostByClockwork, keeps_time(w, kStepShare * context.min_growth_bytes));
    e.warm_up /= std::sqrt(e.clockwork);
    if (largest_fall_before(w) > kChurnFall * e.net_bytes)
      e.churn = kChurnWeight;
    else if (w.floors.regime > 0)
      e.churn =
          kChurnWeight * w.level.regimes().chance_of_no_fall(w.level[w.first].slot, static_cast<double>(e.buckets));
    if (life_s) e.day = day_weight(e, *life_s);
  }
  const double wait_s =
      e.oom_in_s ? std::clamp(*e.oom_in_s, kLeastDuration_s, std::max(kLeastDuration_s, context.min_duration_s))
                 : context.min_duration_s;
  const double free_bytes = context.limit_bytes.value_or(e.start_bytes) - e.start_bytes;
  const double least = std::max(context.min_growth_bytes,
                                std::min(kMaterialShare * free_bytes, kMaterialMost * context.min_growth_bytes));
  e.material = e.duration_s >= wait_s && e.net_bytes >= least;
}

/// The probability of a leak beside rivals of these weights, as far as the gates allow.
double probability_beside(double rivals, const EvidenceContext& context, const Evidence& e) {
  const double probability = 1 / (1 + rivals * (kNeutralPrior / std::max(context.leak_prior, kLeastPrior)));
  return e.admissible() ? probability : std::min(probability, kMostInadmissible);
}

/// The evidence of the window's bet, against the other explanations of `e`.
void weigh_chance(const Window& w, const EvidenceContext& context, Evidence& e) {
  e.nats = w.nats;
  e.noise = noise_weight(e.nats, w.starts);
  if (e.quiet_s >= kLongQuiet * e.duration_s && e.noise > kSlightNoise)
    e.noise =
        std::clamp(kLevelChanges * std::max(order_by_chance(w), rising_order_p(static_cast<std::size_t>(e.rises))),
                   e.noise / kMostByOrder, e.noise);
  e.noise /= e.clockwork;
  e.probability = probability_beside(e.noise + e.warm_up + e.cycle + e.churn + e.day, context, e);
}

}  // namespace

std::optional<Evidence> weigh(const Scales& scales, std::size_t k, const EvidenceContext& context) {
  const Level& level = scales.level(k);
  if (level.size() < kMinIncrements + 1 || level.is_flat()) return std::nullopt;
  const std::size_t last = level.size() - 1;
  std::optional<Evidence> result;
  Starts seen;
  // Bets mostly agree on the start: what they see there is examined once.
  std::optional<Evidence> rise;
  std::size_t risen = level.size();
  bool is_weighed = false;
  const Floors floors(scales, k);
  Starts starts = starts_of(level, floors);
  if (context.regime)
    if (const auto first = bucket_from(scales, k, *context.regime)) {
      const std::array<double, kBets> nats = nats_since(level, *first);
      for (std::size_t bet = 0; bet < kBets; ++bet) starts.push_back({*first, bet, nats[bet]});
    }
  static const double kHopelessNats = std::log(noise_weight(0, 0) / kHopelessNoise);
  std::size_t begins = level.size();
  std::size_t rises = begins;
  for (const Start& start : starts) {
    const double nats = std::max(0.0, start.nats - kMixed);
    if (nats < kHopelessNats) continue;
    if (start.first != begins) rises = without_flat_beginning(floors, start.first);
    begins = start.first;
    Start from = start;
    from.first = rises;
    const auto same = [&](const Start& s) { return s.first == from.first && s.bet == from.bet; };
    if (last - from.first < kMinIncrements || std::any_of(seen.begin(), seen.end(), same)) continue;
    seen.push_back(from);
    const auto moves = static_cast<double>(level.moves(from.bet));
    const Window w{scales, level, floors, k, from.first, last, nats, moves};
    if (from.first != risen) {
      rise = rise_of(w);
      is_weighed = false;
    }
    risen = from.first;
    // Whatever its rivals weigh, it cannot be better.
    if (!rise || (result && !rise->admissible() &&
                  (result->admissible() ||
                   result->probability >= probability_beside(noise_weight(nats, moves), context, *rise))))
      continue;
    if (!is_weighed) weigh_rivals(w, context, *rise);
    is_weighed = true;
    weigh_chance(w, context, *rise);
    const auto rank = [](const Evidence& of) { return std::pair(of.admissible(), of.probability); };
    if (!result || rank(*rise) > rank(*result)) result = rise;
  }
  return result;
}

std::optional<Evidence> weigh_from(const Scales& scales, std::size_t k, Timestamp start,
                                   const EvidenceContext& context) {
  const Level& level = scales.level(k);
  const auto first = bucket_from(scales, k, start);
  if (!first) return std::nullopt;
  const std::array<double, kBets> by_bet = nats_since(level, *first);
  const auto bet = static_cast<std::size_t>(std::max_element(by_bet.begin(), by_bet.end()) - by_bet.begin());
  const double nats = std::max(0.0, by_bet[bet] - kMixed);
  const Floors floors(scales, k);
  const Window w{scales, level, floors, k, *first, level.size() - 1, nats, static_cast<double>(level.moves(bet))};
  auto e = rise_of(w);
  if (!e) return e;
  weigh_rivals(w, context, *e);
  weigh_chance(w, context, *e);
  return e;
}

}  // namespace vramtrack
