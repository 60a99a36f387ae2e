#include "cli/side_by_side.hpp"

#include <utility>

#include "core/markup.hpp"

namespace vramtrack::cli {

std::string side_by_side(std::string_view left, std::string_view right) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>two flame graphs</title>\n"
      "<style>:root{color-scheme:light dark}body{margin:0;display:flex;flex-wrap:wrap;min-height:100vh}"
      "iframe{flex:1 1 480px;min-width:0;min-height:50vh;border:0;border-right:1px solid #8884}</style></head><body>\n";
  for (const auto& [title, page] : {std::pair("the first", left), std::pair("the second", right)}) {
    out += "<iframe title=\"";
    out += title;
    out += "\" srcdoc=\"";
    out += escape_markup(page);
    out += "\"></iframe>\n";
  }
  return out + "</body></html>\n";
}

}  // namespace vramtrack::cli
