// A short name for a text: 16 hexadecimal digits, the same on every machine and in every version.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// 64-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). For names that must be distinct, not secret.
/// O(length).
std::string text_hash(std::string_view text);

}  // namespace vramtrack
