// wrap: lines of prose broken to the width of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack {

/// `text` with its lines broken at spaces, so that each takes at most `width` columns; a longer word stays whole. What
/// is broken off hangs under the text behind the line's label ("    because  the slope ..."), or a little further in
/// than the line where it has no label. Colour codes take no columns. 0: `text` as it is. Pure; O(size).
std::string wrap(std::string_view text, std::size_t width);

}  // namespace vramtrack
