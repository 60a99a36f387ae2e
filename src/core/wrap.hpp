// wrap: lines of prose broken to the width of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack {

/// `text` with its lines broken at spaces, so that each takes at most `width` columns; a longer word stays whole.
/// Continuation lines are aligned with the text after the line's label ("    because  the slope ..."), or indented a
/// little more than the line if it has no label. Colour codes take no columns. 0: `text` unchanged. Pure; O(size).
std::string wrap(std::string_view text, std::size_t width);

}  // namespace vramtrack
