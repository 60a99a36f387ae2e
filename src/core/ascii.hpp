// ASCII characters and words, independently of the locale.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace vramtrack {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/// Whether `c` separates the words of a line.
constexpr bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

/// `text` without the characters of `marks` at its ends.
constexpr std::string_view trimmed(std::string_view text, std::string_view marks = " \t\r\n") {
  const std::size_t from = std::min(text.find_first_not_of(marks), text.size());
  return text.substr(from, text.find_last_not_of(marks) + 1 - from);
}

/// Whether `text` consists of digits only, at least one.
constexpr bool is_all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// Takes the next word (separated by spaces or tabs) off `rest`; empty if there is none.
constexpr std::string_view take_word(std::string_view& rest) {
  const auto from = static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), is_space) - rest.begin());
  rest.remove_prefix(from);
  const auto size = static_cast<std::size_t>(std::find_if(rest.begin(), rest.end(), is_space) - rest.begin());
  const std::string_view word = rest.substr(0, size);
  rest.remove_prefix(size);
  return word;
}

/// The part after the last slash; slashes at the end are ignored.
constexpr std::string_view base_name(std::string_view path) {
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

}  // namespace vramtrack
