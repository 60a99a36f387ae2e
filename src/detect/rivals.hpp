// Rivals: what else may explain a rise, each as a weight against a leak's 1 or as a likelihood ratio. Pure functions of
// a window. The reasons for the constants: docs/detectors/judge.md.
#pragma once

#include <optional>

#include "core/program_kind.hpp"
#include "core/units.hpp"
#include "detect/evidence.hpp"
#include "detect/window.hpp"

namespace vramtrack {

/// The chance that driftless increments would have produced such evidence from one of their starts, as a weight
/// against a leak's 1.
double noise_weight(double nats, double starts);

/// One-sided p-value of Mann-Kendall's S over the window's floors: the chance of such an order if they varied around
/// one constant level (Mann 1945; Kendall 1975). Ties do not reduce the variance, which is conservative. The normal
/// approximation from seven points on; with fewer, the exact chance of no inversion. O(48^2).
double order_by_chance(const Window& w);

/// Bayes factor of "steps at equal intervals" against "steps at random times": Gaussian against exponential intervals,
/// both with the observed mean, the Gaussian with the observed deviation (and a penalty for it). 1 if the window is not
/// a staircase of at least four steps. Settling programs, caching allocators and arriving jobs do not keep time.
double keeps_time(const Window& w, double least_step_bytes);

/// Likelihood ratio of the growth's centroid: growth that continues against growth that settles. A leak's rate follows
/// the load, which drifts: standard deviation 0.05 of the centroid (a rate falling linearly by half over the window).
/// Saturating rises have centroids anywhere from 0.1 to 0.5 (log: 0.28, sqrt: 0.33, exponential seen for one time
/// constant: 0.42, for two: 0.34).
double going_on_ratio(double centroid, double se);

/// Weight of "a straight rise that ends by itself". There are two kinds. Ramps (a warm-up, a ramp up to a collection, a
/// cache that fills) have a median length of eight minutes, nine in ten between one minute and 65, take a twentieth to
/// half of the free memory, and begin with their program or at the end of a similar ramp: after a quiet period they are
/// rare, and if the program's start was not seen (`young` false: the watch began in the middle of its life) they are a
/// tenth as likely. Loads (a model, a new phase) may come at any time, are over in seconds to minutes, and take any
/// share of the free memory. Leaks take all of the memory, in hours to days; among those that would take less than four
/// hours, faster ones are rarer, as they tend to be noticed during development.
double ramp_weight(double duration_s, std::optional<double> life_s, double quiet_s, bool young);

/// Largest fall of the floor from one bucket to the next before the window, in the present regime.
double largest_fall_before(const Window& w);

/// Weight of the rising half of a day's load. It bends upwards at first: over its first half, its growth's centroid
/// lies between 0.5 and 0.67; a leak's is around 0.5. For windows of one to thirteen hours that would fill the memory
/// in six hours or more, in a series that has not been seen for a day before.
double day_weight(const Evidence& e, double life_s);

/// A load takes half an hour at most, plus some minutes until its end is seen.
inline constexpr double kLongestLoad_s = 36 * kSecondsPerMinute;

/// The life of a program in which a rise was seen: what preceded it, and what is known of it.
struct YoungLife {
  double before_s = 0;      ///< from its beginning to the rise
  double before_bytes = 0;  ///< the memory that it took then
  double age_s = 0;
  bool works = false;  ///< it is known to have worked during the rise
};

/// The highest confidence in a rise that may be a load.
inline constexpr double kMayBeLoad = 0.8;

/// kMayBeLoad for a rise that may be a load, by its curve alone; 1 if it cannot be one. A program that is no
/// more than kLongestLoad_s old loads, at once or in stages, at rates that fill a tenth of the memory in that time; if
/// it works meanwhile, because it converts what it loads, two thirds, starting in the first minutes of its life. A
/// leak that follows a load is slower than the load was.
double most_of_young_load(const Evidence& e, double limit_bytes, const YoungLife& life);

/// The highest confidence in a rise that may be the first morning of a daily load, however straight it is; 1 if it
/// cannot be one. Nothing in a single series distinguishes such a morning from a leak until it has lasted longer than
/// a day's load rises, or the series has been seen for a day (`seen_s`). Mornings take half a day or less, and rarely
/// more than half of the free memory, so the memory would last (`life_s`) for six hours or more. Their steps do not
/// come at equal intervals. A program that trains, works through a batch or runs cells has no mornings; one that serves
/// clients has them.
double most_of_first_morning(const Evidence& e, double life_s, double seen_s, ProgramKind kind);

}  // namespace vramtrack
