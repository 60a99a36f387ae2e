// A bound on the depth of TOML before it is parsed: the parser recurses once for each part of a dotted key.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack {

/// More than any file needs, and far less than a stack allows. toml++ itself bounds nested values (256).
inline constexpr std::uint32_t kMaxKeyParts = 64;

/// An Error if a key has more than kMaxKeyParts parts ("a.b.c" has three), even in a table's header; it names `file`
/// and the line of the first such key. The text need not be valid TOML. Pure; O(n).
Status check_key_depth(std::string_view toml, std::string_view file);

}  // namespace vramtrack
