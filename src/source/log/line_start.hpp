// The time of a line of free text, and what a logger put before its message. Private to the reader of free text.
#pragma once

#include <string_view>

#include "source/log/elapsed.hpp"

namespace vramtrack {

/// Views into the line; empty: it has none.
struct LineStart {
  std::string_view prefix;  ///< see LineFigures::prefix
  std::string_view tag;     ///< see LineFigures::tag
  std::string_view stamp;   ///< see find_stamp()
  std::string_view minute;  ///< see LineFigures::minute
  Elapsed elapsed;          ///< see LineFigures::elapsed
  bool by_value = false;    ///< whether the values of digits decide where these are, and not the form of the line alone

  [[nodiscard]] std::string_view time() const {
    return !stamp.empty() ? stamp : !minute.empty() ? minute : elapsed.text;
  }
};

LineStart read_line_start(std::string_view line);

}  // namespace vramtrack
