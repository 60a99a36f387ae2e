// A bound on the depth of TOML before it is parsed: the parser goes down once for each part of a dotted key.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack {

/// More than any file has, and far less than a stack holds. toml++ bounds nested values itself (256).
inline constexpr std::uint32_t kMaxKeyParts = 64;

/// An Error where a key has more than kMaxKeyParts parts ("a.b.c" has three), in a table's header too; it names `file`
/// and the line of the first. Need not be valid TOML. Pure; O(n).
Status check_key_depth(std::string_view toml, std::string_view file);

}  // namespace vramtrack
