// A short name for a text: 16 hexadecimal digits, the same on every machine and in every version.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/). For names that need to differ, not to be secret.
/// O(length).
std::string text_hash(std::string_view text);

}  // namespace vramtrack
