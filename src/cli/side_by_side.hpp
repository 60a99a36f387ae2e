// Two pages of ours in one, for a browser: each keeps its own script and zoom.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack::cli {

/// Beside each other, or one below the other where there is little room. Both are whole HTML documents.
std::string side_by_side(std::string_view left, std::string_view right);

}  // namespace vramtrack::cli
