// The words of a column's title, translated to English.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "source/log/labels.hpp"

namespace vramtrack {

/// A title cut into lower-case words, with its unit kept separately.
struct TitleWords {
  std::vector<std::string> words;
  std::uint64_t unit_bytes = 0;
  std::int64_t unit_ns = 0;
  bool percent = false;
  bool other_unit = false;  ///< the unit is degrees, watts or a clock rate
  bool of_card = false;     ///< "Memory Used (Dedicated)"

  [[nodiscard]] bool has(std::initializer_list<std::string_view> any) const {
    for (const std::string_view w : any)
      if (std::find(words.begin(), words.end(), w) != words.end()) return true;
    return false;
  }
  /// The words, separated by spaces.
  [[nodiscard]] std::string text() const;
  /// Their meaning, ignoring a number at the end of a word. The views of the label point into `words`.
  [[nodiscard]] Label label() const;
};

/// Cuts a title such as "memory.used [MiB]", "gpuMemUsedMb", "Belegt (MB)" or "显存占用(MB)". Pure; microseconds.
TitleWords read_title(std::string_view title);

}  // namespace vramtrack
