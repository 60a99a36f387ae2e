// Which series show one leak. The only place that decides it: what a terminal counts as one alert, what `top`, the page
// and the reports show as one, and what notifications send as one incident follow from this (report/story.hpp).
#pragma once

#include "core/series.hpp"

namespace vramtrack {

/// Whether a leak that `whole` shows is the one that `part` shows: a device speaks for its parts, a process for what
/// its allocator reports, and what is allocated for what is reserved. Pure.
bool speaks_for(const SeriesKey& whole, const SeriesKey& part);

/// How much of a device a series is about: of several that show one leak, the lowest speaks for the others.
int speaking_rank(Metric metric);

/// Whether either speaks for the other, or they are the same.
inline bool show_one_leak(const SeriesKey& a, const SeriesKey& b) {
  return a == b || speaks_for(a, b) || speaks_for(b, a);
}

}  // namespace vramtrack
