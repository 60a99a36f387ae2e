// Round ticks for the time axis of a chart, the same in reports and on the terminal.
#pragma once

#include <string>
#include <vector>

#include "core/scale.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// Seconds between round ticks, at most `most` of which fit into `length_s`: 1 s to a week, or whole steps if `scale`
/// counts steps. REQUIRES: most > 0. Pure.
double time_step(double length_s, const Scale& scale, int most = 8);

/// The multiples of `step_s` from `from` to `to`, in the zone that clock_time() uses, so that full hours are full hours
/// there. O(ticks).
std::vector<Timestamp> time_ticks(Timestamp from, Timestamp to, double step_s);

/// "08:15", "08:15:30" if ticks are less than a minute apart, "01-05" at midnight and if they are days apart; a
/// duration or a number of steps if the clock is relative.
std::string time_label(Timestamp tick, double step_s, bool clock_is_relative, const Scale& scale);

}  // namespace vramtrack
