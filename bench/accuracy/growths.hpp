// What is said of one growth, looked at each minute of its life: whether onset, probability and end are one story.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "trace.hpp"

namespace vramtrack::accuracy {

/// What the verdict of the device said at one minute.
struct Told {
  double at_s = 0;
  bool rises = false;  ///< it told of a growth, with an onset
  double onset_s = 0;
  double probability = 0;
  std::optional<Interval> end_in_s;
};

/// The sums over one leak. A cut is a minute at which a growth was told of, from the leak's onset to its end. A story
/// ends where the verdict says that nothing rises any more: that is an event with a name.
struct GrowthSums {
  std::size_t cuts = 0;
  std::size_t onset_held = 0;   ///< within max(2 min, 3 % of the growth's age) of the first stable one of its story
  std::size_t onset_right = 0;  ///< within max(2 min, 5 % of the growth's age) of the truth
  std::size_t sunk = 0;         ///< the probability was more than .05 below an earlier one of its story
  std::size_t stories = 0;
  std::size_t sunken_stories = 0;  ///< in which it was so once
  std::size_t ends = 0;            ///< an end was told, and the true one is known
  std::size_t ends_right = 0;      ///< it was within the interval
  std::size_t wider = 0;           ///< the interval was 1.3 times as wide as an earlier one of its story, as a ratio

  GrowthSums& operator+=(const GrowthSums& other);
};

/// `end_s`: when memory ran out; nullopt: not known.
GrowthSums sums_of(const std::vector<Told>& told, double onset_s, std::optional<double> end_s);

/// A line for each move of the onset by more than two minutes, and each fall of the probability by more than .05.
std::string moves_of(const std::vector<Told>& told);

/// Plays a leaking trace and looks at it each minute, or at each sample where those are rarer.
/// `moves`, if not null, gets its moves_of().
GrowthSums follow_growth(const Trace& trace, const Config& config, std::string* moves = nullptr);

/// `each` traces of every leaking family of the usual ones.
std::vector<Trace> growing_traces(Split split, std::uint64_t seed, std::uint64_t each);
/// The scenarios of a folder whose truth is a leak with an onset.
std::vector<Trace> leaking_scenarios(const std::string& folder);

/// Follows all of them; a row for each family, and their sum; with `examples` what moved in each.
std::string growths_table(const std::vector<Trace>& traces, const Config& config, unsigned jobs, bool examples);

}  // namespace vramtrack::accuracy
