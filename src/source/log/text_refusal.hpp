// Explains why a free-text log cannot be read, as far as its lines show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack {

/// Why the lines of `head` cannot be read: amounts of host memory, amounts without a word that names the GPU's, or
/// numbers without a time and a unit. Names a line, what was expected and the option that helps. Empty: no such reason.
/// Pure; O(bytes), at most the first 4,000 lines.
std::string why_no_text(std::string_view head);

/// A --line-pattern that reads the amount at [begin, end) of `line` as used memory by the word next to it, for a
/// message that asks for one; empty: no word distinguishes it from the rest of the line.
std::string example_pattern(std::string_view line, std::size_t begin, std::size_t end);

}  // namespace vramtrack
