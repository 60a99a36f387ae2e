// Why a log of free text cannot be read, as far as its lines show it.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// What keeps the lines of `head` from being read: amounts of the host's memory, amounts without a word that says which
/// is the GPU's, or numbers without a time and a unit. It names a line, what was expected and the option that helps.
/// Empty: they show nothing of that kind. Pure; O(bytes), at most the first 4,000 lines.
std::string why_no_text(std::string_view head);

}  // namespace vramtrack
