// Combines two of vramtrack's pages in one, for a browser; each keeps its own script and zoom.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack::cli {

/// Side by side, or one below the other if there is little room. Both must be whole HTML documents.
std::string side_by_side(std::string_view left, std::string_view right);

}  // namespace vramtrack::cli
