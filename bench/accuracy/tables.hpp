// The tables of docs/ACCURACY.md, as Markdown.
#pragma once

#include <string>
#include <vector>

#include "bench.hpp"

namespace vramtrack::accuracy {

std::string tables(const std::vector<Run>& runs, std::span<const RivalInfo> rivals);

/// A tab-separated line for every trace, with a header: for looking into.
std::string each_line(const std::vector<Run>& runs);

}  // namespace vramtrack::accuracy
