#include "core/markup.hpp"

#include "core/printable.hpp"

namespace vramtrack {
namespace {

void append_xml(std::string& out, char c) {
  if (c == '"')
    out += "&quot;";
  else if (c == '\'')
    out += "&#39;";
  else
    out += c;
}

void append_markdown(std::string& out, char c) {
  if (c == '\n' || c == '\r') {
    out += ' ';
  } else if (c == '@') {
    out += "&#64;";
  } else if (c == '/' && out.ends_with(':')) {
    out += "&#47;";  // a bare address would become a link
  } else if (c == '.' && (out.ends_with("www") || out.ends_with("WWW"))) {
    out += "&#46;";  // as would this
  } else {
    if (std::string_view("\\`*_{}[]#|~!$").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
}

}  // namespace

std::string escape_markup(std::string_view text, Markup markup) {
  std::string out;
  for (const char c : printable_lines(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (markup == Markup::xml)
      append_xml(out, c);
    else if (markup == Markup::markdown)
      append_markdown(out, c);
    else
      out += c;
  }
  return out;
}

}  // namespace vramtrack
