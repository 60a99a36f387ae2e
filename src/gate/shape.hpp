// The shape of a series of memory after each iteration: how much was released, how much lies beneath memory that comes
// and goes, and whether growth has stopped or slows down. Private to the gate's tests; docs/leak-gate.md explains it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace vramtrack::gate {

/// If more than half of all memory ever allocated is released, it may be collected occasionally.
inline constexpr double kGivenBack = 0.5;
inline constexpr double kSlowingZ = 2.33;  ///< normal quantile at 1e-2: growth slows down

/// Running medians of three, each at its first iteration, so that a single odd iteration does not count as a fall.
std::vector<double> levels_of(std::span<const double> y);

struct Fall {
  double largest = 0;  ///< the largest fall below anything earlier
  double range = 0;
};
Fall largest_fall(std::span<const double> levels);

/// The places where memory has fallen by `enough` since it rose: the first level after each fall.
std::vector<std::size_t> falls_of(std::span<const double> levels, double enough);

/// The floor: at each iteration, the smallest value from there on. It excludes memory collected later, but not a leak.
std::vector<double> floor_of(std::vector<double> levels);

/// The length of the part of `levels` in which a collection has had time to remove all growth: everything up to the
/// last fall, and everything after it as well once that lasts longer than the longest time between two falls.
std::size_t had_its_time(std::span<const double> levels, double enough);

/// `y` without memory that is held for less than `length` iterations (the morphological opening: the largest of the
/// minima of all stretches of that length). Memory that stays, and falls, are unchanged.
std::vector<double> without_what_is_held_for_less(std::span<const double> y, std::size_t length);

struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// The part to test of a series that falls below all earlier values by half of its range. No collection does that (it
/// only removes what has grown), so something else ended there. Takes the last long enough stretch, else the longest.
Stretch stretch_of(std::span<const double> y, std::size_t least);

/// Growth from the median of the first block to that of the last.
struct NetGrowth {
  double bytes = 0;
  /// An upper bound (one-sided, about 99.9 %) if the noise is at most as persistent as a random walk. It uses the
  /// median absolute deviation of the steps between blocks, which a few large steps do not change.
  double high_bytes = 0;
  double single_step_bytes = 0;  ///< the largest step, if all others are smaller than a third of it; else 0
};
NetGrowth net_growth(std::span<const double> y, std::size_t blocks);

/// Whether growth ended before the series did: the level has not risen for more than twice as long as ever before, or
/// the last blocks grew the least of all, and by less than half of `centre`. `growth`: per block.
bool has_stopped(std::span<const double> y, std::span<const double> growth, double centre);

/// Whether the growth of `y` slows down. `late_to_early`: growth of the later half of the blocks divided by that of the
/// earlier half. It slows down if this ratio is below a half; or if it is below 0.85 and, at an error rate of 1e-2,
/// Kendall's rank correlation (Mann 1945) of the later two thirds of the blocks with time is negative (robust against
/// jitter) or the increments of the later half of `y` are smaller than in the earlier half (robust against growth by
/// chance); or if it is below 0.95 and those increments are smaller at 1e-3.
bool slows_down(std::span<const double> y, std::span<const double> growth, double late_to_early);

/// Whether the later half of the blocks may grow by less than `share` of the earlier half: it is not above that by `z`
/// standard errors. This stricter test is for series that slowed down before (a warm-up was cut off).
bool may_slow_down(std::span<const double> growth, double share, double z);

/// The smallest value of the last third minus that of the first third: the growth beneath memory that comes and goes.
double growth_of_the_least(std::span<const double> levels);

}  // namespace vramtrack::gate
