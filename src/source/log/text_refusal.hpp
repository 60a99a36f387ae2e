// Why a log of free text cannot be read, as far as its lines show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack {

/// What keeps the lines of `head` from being read: amounts of the host's memory, amounts without a word that says which
/// is the GPU's, or numbers without a time and a unit. It names a line, what was expected and the option that helps.
/// Empty: they show nothing of that kind. Pure; O(bytes), at most the first 4,000 lines.
std::string why_no_text(std::string_view head);

/// A --line-pattern that reads the amount at [begin, end) of `line` as used memory by the word next to it, for a
/// message that asks for one; empty: no word tells it from what else stands in the line.
std::string example_pattern(std::string_view line, std::size_t begin, std::size_t end);

}  // namespace vramtrack
