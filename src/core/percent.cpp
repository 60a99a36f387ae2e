#include "core/percent.hpp"

#include <fmt/format.h>

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

}  // namespace vramtrack
