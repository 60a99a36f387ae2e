// Numbers in text that holds nothing else.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace vramtrack {

/// All of `text` as an integer in `base`, or as a floating-point number. nullopt: it is something else, or T cannot
/// hold it. The locale does not matter.
template <class T>
std::optional<T> parse_number(std::string_view text, [[maybe_unused]] int base = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::integral<T>)
    read = std::from_chars(text.data(), end, value, base);
  else
    read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc{} && read.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace vramtrack
