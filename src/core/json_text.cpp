#include "core/json_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/printable.hpp"

namespace vramtrack {

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '\n' || c == '\t')
      out += c == '\n' ? "\\n" : "\\t";
    else if (c == '"' || c == '\\')
      (out += '\\') += c;
    else
      out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  out += '"';
}

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

JsonText& JsonText::key(std::string_view name) {
  separate();
  append_json_string(text_, printable_lines(name));
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonText& JsonText::value(std::string_view text) {
  separate();
  append_json_string(text_, printable_lines(text));
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
