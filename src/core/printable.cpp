#include "core/printable.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace vramtrack {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;
};

/// The code point with which `text` begins; nullopt if it is not UTF-8 (RFC 3629: no overlong forms, no surrogates).
std::optional<CodePoint> first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return std::nullopt;
  char32_t value = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return std::nullopt;
    value = value << 6U | (byte(i) & 0x3fU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kSmallest[bytes] || value > 0x10ffff || surrogate) return std::nullopt;
  return CodePoint{value, bytes};
}

/// Control characters (C0, DEL, C1), the bidirectional controls of UAX #9, and the separators of lines and paragraphs.
bool steers(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/// White space that does not belong in a line of text: tabs, line and paragraph separators.
bool breaks_line(char32_t c) {
  return (c >= 0x9 && c <= 0xd) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/// The bytes of the white space with which `text` begins; 0 if it begins with other text, or with spaces alone.
std::size_t breaking_space(std::string_view text) {
  std::size_t size = 0;
  bool breaks = false;
  while (size < text.size()) {
    const auto c = first_of(text.substr(size));
    if (!c || (c->value != ' ' && !breaks_line(c->value))) break;
    breaks = breaks || c->value != ' ';
    size += c->bytes;
  }
  return breaks ? size : 0;
}

std::string cleaned(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (const std::size_t space = kept.empty() ? breaking_space(text) : 0; space > 0) {
      out += ' ';
      text.remove_prefix(space);
      continue;
    }
    if (!kept.empty() && text.substr(0, 2) == "\r\n") text.remove_prefix(1);  // the line feed suffices
    const auto c = first_of(text);
    const std::size_t bytes = c ? c->bytes : 1;
    if (!c)
      out += "\xef\xbf\xbd";  // U+FFFD
    else if (steers(c->value) && kept.find(text.front()) == std::string_view::npos)
      out += '?';
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return cleaned(text, {});
}

std::string printable_lines(std::string_view text) {
  return cleaned(text, "\n\t");
}

std::string printable_json(std::string_view json) {
  std::string out;
  const std::string text = printable_lines(json);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char escaped = text[++i];
    // A code point that a library escapes instead of writing it: one below 0x20, or DEL.
    const bool control = std::string_view("bfr").find(escaped) != std::string_view::npos ||
                         (escaped == 'u' && (text.compare(i + 1, 3, "000") == 0 || text.compare(i + 1, 3, "001") == 0 ||
                                             text.compare(i + 1, 4, "007f") == 0));
    if (control) {
      out += '?';
      if (escaped == 'u') i += 4;
    } else {
      out += '\\';
      out += escaped;
    }
  }
  return out;
}

}  // namespace vramtrack
