#include "detect/cycles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/statistics.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

/// The same share as for a fall of the floor, which begins a new regime.
constexpr double kSwingShare = 0.2;
/// The next cycle has begun when this much of the fall is regained.
constexpr double kBackShare = 0.5;

/// Five: in random order, one in 120 rises throughout.
constexpr std::size_t kLeastLows = least_rising(0.01);
/// A single step of this share of the trend is a change of what runs, not the residue of each cycle.
constexpr double kMostOfTrend = 0.45;
/// The residue keeps growing: the later half of the cycles adds at least this share of the trend.
constexpr double kLaterHalf = 0.2;
/// Shorter ones are steps of one piece of work, and a rise over them is left to the judge itself.
constexpr double kLeastCycle_s = 8 * kSecondsPerMinute;
/// A load or a warm-up in stages is over by then.
constexpr double kLeastTrend_s = 30 * kSecondsPerMinute;

/// Work that takes more in each cycle by itself: a sweep of sizes, a curriculum, a morning. It is ruled
/// out by the number of repetitions.
constexpr double kGrowingLoad = 0.8;
/// However often it repeats: the residue of the next cycle is not known before that is over.
constexpr double kMostProbability = 0.9;

constexpr double kConfirmedLate = 0.83;
constexpr double kLateLifeShare = 0.25;
/// A trend is over when no cycle has ended for this many of them, when this many in a row did not continue it, or
/// when this much of it was released.
constexpr double kPatienceCycles = 3;
constexpr std::size_t kMostMisses = 2;
constexpr double kGivenBackShare = 0.5;
constexpr double kTypicalCycles = 2;  ///< the spread of the remaining life, as a factor

/// Of `n` values in random order, the k-th from the end is below all that follow with probability 1/k, independently
/// of the others (Renyi, "Theorie des elements saillants d'une suite d'observations", 1962). The distribution of
/// their number, computed value by value.
class LowsByChance {
 public:
  void add() {
    const double p = 1 / static_cast<double>(++values_);
    for (std::size_t k = values_; k > 0; --k) share_[k] = share_[k] * (1 - p) + share_[k - 1] * p;
    share_[0] *= 1 - p;
  }
  /// The chance of at least `lows`.
  [[nodiscard]] double at_least(std::size_t lows) const {
    double sum = 0;
    for (std::size_t k = lows; k <= values_; ++k) sum += share_[k];
    return sum;
  }

 private:
  std::array<double, Cycles::kMost + 1> share_{1};
  std::size_t values_ = 0;
};

/// The positions of the lows from `from` on, the latest first.
std::vector<std::size_t> lows_since(const std::vector<Trough>& t, std::size_t from, double least_bytes) {
  std::vector<std::size_t> lows{t.size() - 1};
  double lowest = t.back().bytes;
  for (std::size_t i = t.size() - 1; i-- > from;) {
    if (t[i].bytes <= lowest - least_bytes) lows.push_back(i);
    lowest = std::min(lowest, t[i].bytes);
  }
  return lows;
}

/// Describes the trend from `from` on; nullopt if it does not continue, or is a single step.
std::optional<CycleTrend> describe(const std::vector<Trough>& t, std::size_t from, double least_bytes) {
  const std::vector<std::size_t> lows = lows_since(t, from, least_bytes);
  CycleTrend c;
  c.cycles = t.size() - from;
  c.lows = lows.size();
  // The last trough is always a low: among cycles that differ, the lowest of the last few shows where they begin.
  const std::size_t few = (c.cycles + c.lows - 1) / c.lows;
  const auto lowest_of = [&](std::size_t end) {
    double lowest = t[end - 1].bytes;
    for (std::size_t i = end - few; i < end; ++i) lowest = std::min(lowest, t[i].bytes);
    return lowest;
  };
  c.level_bytes = lowest_of(t.size());
  c.net_bytes = c.level_bytes - t[from].bytes;
  const auto steps = static_cast<double>(c.cycles - few);
  if (!(c.net_bytes > 0) || !(steps > 0)) return std::nullopt;
  double largest = 0;
  for (std::size_t i = 1; i < lows.size(); ++i)
    largest = std::max(largest, std::min(c.level_bytes, t[lows[i - 1]].bytes) - t[lows[i]].bytes);
  if (largest > kMostOfTrend * c.net_bytes) return std::nullopt;
  const double half = lowest_of(std::max(from + few, t.size() - c.cycles / 2));
  if (c.level_bytes - half < kLaterHalf * c.net_bytes) return std::nullopt;
  c.step_bytes = c.net_bytes / steps;
  c.cycle_s = seconds_between(t[from].time, t.back().time) / static_cast<double>(c.cycles - 1);
  c.low_every_s = c.cycle_s * static_cast<double>(c.cycles) / static_cast<double>(c.lows);
  c.onset = t[from].time;
  return c;
}

}  // namespace

bool Cycles::observe(Timestamp time, double bytes, double least_bytes) {
  if (!begun_) {
    begun_ = true;
    high_bytes_ = low_bytes_ = bytes;
    low_time_ = time;
    return false;
  }
  if (!falls_) {
    high_bytes_ = std::max(high_bytes_, bytes);
    if (bytes >= high_bytes_ - std::max(kSwingShare * high_bytes_, least_bytes)) return false;
    falls_ = true;
    low_bytes_ = bytes;
    low_time_ = time;
    return false;
  }
  if (bytes <= low_bytes_) {
    low_bytes_ = bytes;
    low_time_ = time;
    return false;
  }
  if (bytes < low_bytes_ + std::max({kBackShare * (high_bytes_ - low_bytes_), kSwingShare * bytes, least_bytes}))
    return false;
  troughs_.push_back({low_time_, low_bytes_, high_bytes_});
  if (troughs_.size() > kMost) troughs_.erase(troughs_.begin());
  falls_ = false;
  high_bytes_ = bytes;
  return true;
}

std::optional<CycleTrend> cycle_trend_of(const std::vector<Trough>& troughs, double least_bytes, bool in_a_row) {
  if (troughs.size() < kLeastLows) return std::nullopt;
  const auto lately = troughs.end() - static_cast<std::ptrdiff_t>(kLeastLows);
  if (seconds_between(lately->time, troughs.back().time) < kLeastCycle_s * static_cast<double>(kLeastLows - 1) ||
      seconds_between(troughs.front().time, troughs.back().time) < kLeastTrend_s)
    return std::nullopt;
  std::optional<CycleTrend> best;
  LowsByChance by_chance;
  std::size_t lows = 0;
  double lowest = 0;
  for (std::size_t i = troughs.size(); i-- > 0;) {
    by_chance.add();
    const bool low = lows == 0 || troughs[i].bytes <= lowest - least_bytes;
    lowest = lows == 0 ? troughs[i].bytes : std::min(lowest, troughs[i].bytes);
    if (!low && in_a_row) break;
    if (!low || ++lows < kLeastLows || seconds_between(troughs[i].time, troughs.back().time) < kLeastTrend_s) continue;
    // The trend may begin at each of the cycles.
    const double chance = static_cast<double>(i + 1) * by_chance.at_least(lows);
    const double probability = 1 / (1 + chance + kGrowingLoad / static_cast<double>(lows));
    if (best && probability <= best->probability) continue;
    auto trend = describe(troughs, i, least_bytes);
    if (!trend) continue;
    trend->chance = chance;
    trend->probability = std::min(probability, kMostProbability);
    best = trend;
  }
  return best;
}

void CycleJudge::observe(Timestamp time, double used_bytes) {
  last_ = time;
  const double least_bytes = config_.min_growth_mb * kMiB;
  if (cycles_.observe(time, used_bytes, 8 * least_bytes)) decide();
  if (!suspecting_ || !trend_) return;
  peak_bytes_ = std::max(peak_bytes_, used_bytes);
  if (used_bytes < trend_->level_bytes - kGivenBackShare * trend_->net_bytes)
    return end("the program released what earlier cycles had left");
  if (seconds_between(cycles_.troughs().back().time, time) > kPatienceCycles * trend_->cycle_s)
    return end(
        fmt::format("no cycle has ended for {}", figures_.span(seconds_between(cycles_.troughs().back().time, time))));
}

void CycleJudge::decide() {
  const std::vector<Trough>& troughs = cycles_.troughs();
  const auto trend = cycle_trend_of(troughs, config_.min_growth_mb * kMiB);
  if (!trend || trend->probability < config_.confidence_threshold) {
    if (suspecting_ && ++misses_ > kMostMisses) end("the cycles no longer leave more memory behind");
    return;
  }
  trend_ = trend;
  misses_ = 0;
  peak_bytes_ = 0;
  for (std::size_t i = troughs.size() - trend_->cycles + 1; i < troughs.size(); ++i)
    peak_bytes_ =
        std::max(peak_bytes_, troughs[i].peak_bytes + trend_->step_bytes * static_cast<double>(troughs.size() - i));
  const auto left = cycles_left();
  // Beyond the horizon, it does not end a run.
  if (left && *left * trend_->cycle_s > config_.horizon_days * kSecondsPerDay) {
    if (suspecting_) end("memory lasts longer than horizon-days");
    return;
  }
  suspecting_ = true;
  if (!left || trend_->probability < kConfirmedLate) return;
  const double left_s = *left * trend_->cycle_s;
  const double life_s = seconds_between(trend_->onset, last_) + left_s;
  alerting_ |= left_s <= std::max(config_.lead_time_minutes * kSecondsPerMinute, kLateLifeShare * life_s);
}

void CycleJudge::end(std::string reason) {
  suspecting_ = alerting_ = false;
  trend_.reset();
  end_reason_ = std::move(reason);
}

/// Cycles after the present one until a peak reaches the limit; fractions count.
std::optional<double> CycleJudge::cycles_left() const {
  if (!limit_bytes_ || !trend_) return std::nullopt;
  return std::max(0.0, *limit_bytes_ - peak_bytes_) / trend_->step_bytes;
}

Finding CycleJudge::finding() const {
  Finding f;
  f.detector = "judge";
  f.confidence = kUnknownConfidence;
  if (!trend_ || !suspecting_) return f;
  const CycleTrend& c = *trend_;
  f.confidence = c.probability;
  f.leak = alerting_;
  f.stage = alerting_ ? Stage::confirmed : Stage::suspected;
  f.state = alerting_ ? State::leaking : State::growing;
  f.pattern = alerting_ ? Pattern::cyclic : Pattern::none;
  const double rate = c.cycle_s > 0 ? c.step_bytes / c.cycle_s : 0;
  f.growth_bytes_per_s = {rate / kTypicalCycles, rate, rate * kTypicalCycles};
  f.onset = c.onset;
  const auto left = cycles_left();
  if (left) {
    // It ends at a peak: no earlier than the next one, give or take a cycle.
    const double mid_s = std::max(0.5, *left) * c.cycle_s;
    if (alerting_)
      f.oom_in_s = Interval{mid_s / kTypicalCycles, mid_s, mid_s + c.cycle_s * std::max(1.0, *left / kTypicalCycles)};
    else
      f.oom_if_growth_continues_s = mid_s;
  }
  const std::string cycles =
      c.lows == c.cycles
          ? fmt::format("each of the last {} cycles began higher than the one before", c.cycles)
          : fmt::format("of the last {} cycles, {} began lower than all that followed", c.cycles, c.lows);
  f.because = fmt::format("{}: each leaves {} behind on average, {} in {}{}; odds of this by chance: {}", cycles,
                          figures_.bytes(c.step_bytes), figures_.bytes(c.net_bytes),
                          figures_.span(seconds_between(c.onset, cycles_.troughs().back().time)),
                          left ? (*left < 1 ? std::string("; the next one will not fit")
                                            : fmt::format("; {:.0f} more fit", std::floor(*left)))
                               : std::string(),
                          c.chance > 0.5 ? std::string("even") : fmt::format("1 in {:.0f}", 1 / c.chance));
  return f;
}

}  // namespace vramtrack
