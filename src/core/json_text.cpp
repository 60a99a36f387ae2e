#include "core/json_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/printable.hpp"

namespace vramtrack {
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
  for (const char c : printable_lines(text)) {
    if (c == '\n' || c == '\t') {
      text_ += c == '\n' ? "\\n" : "\\t";
      continue;
    }
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
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

}  // namespace vramtrack
