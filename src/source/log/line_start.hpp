// The time in a line of free text, wherever it is, and the text that a logger put before the message.
#pragma once

#include <string_view>

namespace vramtrack {

/// The part of `line` that is a date with a time of day ("host Sat Jun 23 20:36:39 2018 driver", "[2026-03-01
/// 10:00:00,370] INFO") that StampReader reads; else its first time of day with seconds; else the seconds since 1970 at
/// its start, or introduced by a word ("ts=1772359200.25"). Empty if there is none. Sets `by_value` if the values of
/// the digits matter, not only their positions and which are 0 or 1.
std::string_view find_stamp(std::string_view line, bool* by_value = nullptr);

/// A duration with its unit.
struct Elapsed {
  std::string_view text;  ///< the digits if it is in seconds, else with its units; empty: none
  double seconds = 0;
};

/// "[12.5s]", "+30000ms" or "[0d 00h 05m 30s]" at the start of `line`, "t=120s", "elapsed: 0.5 min", and the kernel's
/// "[ 120.123456]".
Elapsed find_elapsed(std::string_view line);

/// Views into the line; empty if absent.
struct LineStart {
  std::string_view prefix;  ///< see LineFigures::prefix
  std::string_view tag;     ///< see LineFigures::tag
  std::string_view stamp;   ///< see find_stamp()
  std::string_view minute;  ///< see LineFigures::minute
  Elapsed elapsed;          ///< see LineFigures::elapsed
  bool by_value = false;    ///< whether the values of digits, not only the form of the line, determine where these are

  [[nodiscard]] std::string_view time() const {
    return !stamp.empty() ? stamp : !minute.empty() ? minute : elapsed.text;
  }
};

LineStart read_line_start(std::string_view line);

}  // namespace vramtrack
