// Stray contexts: processes that hold a little memory of a GPU on which they never run anything, while they work on
// another one. Reported, with what to do, and never an alert.
#pragma once

#include <string>
#include <vector>

#include "core/series.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {

/// One sentence for each device that has them, for people; in order of the devices. A process counts when for a minute
/// or more its memory there has been small and has stayed the same, it holds at least four times as much on another
/// device, its driver has reported that it runs something there, and never that it runs anything here. O(series).
std::vector<std::string> stray_contexts(const SeriesTable& table, const Catalog& catalog);

}  // namespace vramtrack
