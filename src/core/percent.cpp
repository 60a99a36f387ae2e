#include "core/percent.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/ascii.hpp"

namespace vramtrack {

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_ascii_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '~')
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16).ptr == text.data() + i + 3;
    out += is_escape ? static_cast<char>(code) : text[i];
    if (is_escape) i += 2;
  }
  return out;
}

}  // namespace vramtrack
