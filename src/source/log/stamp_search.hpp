// Finds a time somewhere in a line of other text.
#pragma once

#include <string_view>

namespace vramtrack {

/// The part of `line` that is a date with a time of day ("host  Sat Jun 23 20:36:39 2018  driver",
/// "[2026-03-01 10:00:00,370] INFO"), as StampReader reads it; else its first time of day with seconds; else the
/// seconds since 1970 with which it begins, or that a word names as a time ("ts=1772359200.25"). Empty: there is none.
/// Sets `by_value` if the values of the digits decide, and not only where digits stand and which are 0 or 1.
std::string_view find_stamp(std::string_view line, bool* by_value = nullptr);

}  // namespace vramtrack
