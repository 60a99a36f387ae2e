#include "trace/json_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace vramtrack::trace {
namespace {

/// Bytes of the UTF-8 sequence at text[at], 0 where there is none.
std::size_t sequence(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const std::size_t length = lead < 0x80                   ? 1U
                             : lead >= 0xf0 && lead < 0xf5 ? 4U
                             : lead >= 0xe0 && lead < 0xf0 ? 3U
                             : lead >= 0xc2 && lead < 0xe0 ? 2U
                                                           : 0U;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates and what lies beyond Unicode.
  if (lead == 0xe0 && byte(at + 1) < 0xa0) return 0;
  if (lead == 0xed && byte(at + 1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(at + 1) < 0x90) return 0;
  if (lead == 0xf4 && byte(at + 1) > 0x8f) return 0;
  return length;
}

}  // namespace

void JsonText::separate() {
  if (needs_comma_) text_ += ',';
  needs_comma_ = true;
}

JsonText& JsonText::open(char bracket) {
  separate();
  text_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonText& JsonText::close(char bracket) {
  text_ += bracket;
  needs_comma_ = true;
  return *this;
}

void JsonText::quote(std::string_view text) {
  text_ += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t length = sequence(text, at);
    if (length == 0) {
      text_ += "\xef\xbf\xbd";
      ++at;
      continue;
    }
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      text_ += c == '\n' ? std::string("\\n") : c == '\t' ? std::string("\\t") : fmt::format("\\u{:04x}", c);
    } else {
      text_.append(text.substr(at, length));
    }
    at += length;
  }
  text_ += '"';
}

JsonText& JsonText::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonText& JsonText::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonText& JsonText::value(bool yes) {
  separate();
  text_ += yes ? "true" : "false";
  return *this;
}

JsonText& JsonText::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  text_ += fmt::format("{:.6g}", number);
  return *this;
}

JsonText& JsonText::null() {
  separate();
  text_ += "null";
  return *this;
}

JsonText& JsonText::newline() {
  text_ += '\n';
  return *this;
}

}  // namespace vramtrack::trace
