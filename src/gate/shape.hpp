// The shape of a series of memory after each iteration: which part was released, which part lies beneath what comes
// and goes, and whether growth has stopped or slows down. Private to the gate's tests; docs/leak-gate.md explains it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace vramtrack::gate {

/// If more than half of all memory ever taken is released, the memory may be collected occasionally.
inline constexpr double kGivenBack = 0.5;
inline constexpr double kSlowingZ = 2.33;  ///< of a normal distribution at 1e-2: growth slows down

/// Medians of three, each at its first iteration, so that a single odd iteration is not a fall.
std::vector<double> levels_of(std::span<const double> y);

struct Fall {
  double largest = 0;  ///< below anything earlier
  double range = 0;
};
Fall largest_fall(std::span<const double> levels);

/// The places where memory has fallen by `enough` since it rose: the first level after each fall.
std::vector<std::size_t> falls_of(std::span<const double> levels, double enough);

/// The floor: at each iteration, the smallest value from there on. It excludes what is collected later, but not a leak.
std::vector<double> floor_of(std::vector<double> levels);

/// How much of `levels`, from its beginning, contains only growth that a collection has had time to remove: everything
/// up to the last fall, and also everything after it once that lasts longer than the longest time between two falls.
std::size_t had_its_time(std::span<const double> levels, double enough);

/// `y` without what is held for less than `length` iterations (the morphological opening: the largest of the minima
/// of all stretches of that length). Memory that stays, and falls, are unchanged.
std::vector<double> without_what_is_held_for_less(std::span<const double> y, std::size_t length);

struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// The part to test of a series that falls below everything before by half of its range: no collection does that (it
/// only removes what has grown), so something else ended there. The last stretch that is long enough, else the longest.
Stretch stretch_of(std::span<const double> y, std::size_t least);

/// Growth from the first block's median to the last one's.
struct NetGrowth {
  double bytes = 0;
  /// An upper bound (one-sided, about 99.9 %) if the noise is at most as persistent as a random walk: from the median
  /// absolute deviation of the steps from block to block, which a few large steps do not change.
  double high_bytes = 0;
  double single_step_bytes = 0;  ///< the largest step, if all others are smaller than a third of it; else 0
};
NetGrowth net_growth(std::span<const double> y, std::size_t blocks);

/// Whether growth ended before the series did: the level has not risen for more than twice as long as ever before,
/// or the growth of the last blocks is the lowest of all and below half of `centre`. `growth`: of each block.
bool has_stopped(std::span<const double> y, std::span<const double> growth, double centre);

/// Whether the growth of `y` slows down. `late_to_early`: growth of the later half of the blocks divided by that of
/// the earlier half. It slows down if that is below a half; or below 0.85, and at an error rate of 1e-2 Kendall's rank
/// correlation (Mann 1945) of the later two thirds of the blocks with time is negative (robust against jitter) or the
/// increments of the later half of `y` are smaller than those of the earlier half (robust against growth by chance);
/// or below 0.95 and those are smaller at 1e-3.
bool slows_down(std::span<const double> y, std::span<const double> growth, double late_to_early);

/// Whether it is possible that the later half of the blocks grows by less than `share` of the earlier half: it is not
/// above that by `z` standard errors. The stricter test, for series that slowed down before: a warm-up was cut off.
bool may_slow_down(std::span<const double> growth, double share, double z);

/// The smallest value of the last third minus that of the first third: growth beneath whatever comes and goes.
double growth_of_the_least(std::span<const double> levels);

}  // namespace vramtrack::gate
