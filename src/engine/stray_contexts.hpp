// Stray contexts: processes that hold a little memory on a GPU on which they never run anything, while they work on
// another one. Reported with what to do, but never as an alert.
#pragma once

#include <string>
#include <vector>

#include "core/series.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {

/// One sentence per device that has them, for people; in the order of the devices. A process counts if its memory there
/// has been small and constant for a minute or more, it holds at least four times as much on another
/// device, and its driver has reported that it runs something there, but never that it runs anything here. O(series).
std::vector<std::string> stray_contexts(const SeriesTable& table, const Catalog& catalog);

}  // namespace vramtrack
