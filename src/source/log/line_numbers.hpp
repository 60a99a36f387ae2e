// The numbers in a line of free text, with their units. Private to the reader of free text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "source/log/grouping.hpp"

namespace vramtrack {

/// A number in a line.
struct LineNumber {
  std::size_t begin = 0, digits_end = 0, end = 0;  ///< in the line; `end`: with its unit
  double number = 0;
  std::uint64_t unit_bytes = 0;  ///< 0: none is written
  bool percent = false, rate = false, whole = true, open = false;
  bool binary = false;  ///< in MiB or GiB, which are hardly used for anything but memory

  [[nodiscard]] bool is_amount() const { return unit_bytes != 0 || percent; }
};

/// Finds the numbers of `line` outside `time`, a part of it. `open`: see read_number().
void cut_numbers(std::string_view line, std::string_view time, Grouping open, std::vector<LineNumber>& numbers);

/// `digits` without the spaces and apostrophes between thousands: "4 012" and "4'012" are "4012".
std::string plain_digits(std::string_view digits);

}  // namespace vramtrack
