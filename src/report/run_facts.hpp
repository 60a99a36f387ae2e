// The runs of a device, one line each: when, how fast each grew, how it ended and how early the first alert came.
#pragma once

#include <vector>

#include "report/conclusion_words.hpp"

namespace vramtrack {

/// Lines labelled "runs" for a device that had several: the last ten, the latest last, and the number omitted. Empty
/// if there was only one. Pure; O(runs).
std::vector<Fact> run_facts(const View& view, const SeriesView& series);

}  // namespace vramtrack
