// Lists of amounts in one cell or text: "[9000, 3997]".
#pragma once

#include <string_view>
#include <vector>

namespace vramtrack {

/// The parts of a list that is written as one text: "[9000, 3997]", "9000;3997"; empty if `text` is not a list of
/// amounts: of at least two, or of any number in brackets.
std::vector<std::string_view> parts_of_list(std::string_view text);

}  // namespace vramtrack
