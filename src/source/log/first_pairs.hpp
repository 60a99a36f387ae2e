// FirstPairs: looks for several words at once in one pass over a line, of which few pairs of characters begin one.
#pragma once

#include <bitset>
#include <cstddef>
#include <span>
#include <string_view>

namespace vramtrack {

class FirstPairs {
 public:
  /// REQUIRES: each word has two characters.
  explicit FirstPairs(std::span<const std::string_view> words) : words_(words) {
    for (const std::string_view word : words) begins_.set(pair_at(word, 0));
  }

  /// Whether one of the words stands in `line`, and `is_it(word, at)`.
  template <class IsIt>
  bool any_of(std::string_view line, IsIt is_it) const {
    for (std::size_t at = 0; at + 1 < line.size(); ++at) {
      if (!begins_.test(pair_at(line, at))) continue;
      for (const std::string_view word : words_)
        if (word[0] == line[at] && word[1] == line[at + 1] && line.substr(at).starts_with(word) && is_it(word, at))
          return true;
    }
    return false;
  }

 private:
  static std::size_t pair_at(std::string_view text, std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(text[at])) << 8U |
           static_cast<unsigned char>(text[at + 1]);
  }

  std::span<const std::string_view> words_;
  std::bitset<65536> begins_;
};

}  // namespace vramtrack
