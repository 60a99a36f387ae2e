#include "cli/timeline_html.hpp"

#include "agent/assets.hpp"
#include "core/markup.hpp"

namespace vramtrack::cli {
Result<std::string> timeline_html(std::string_view title, std::string_view json) {
  const agent::Asset* const script = agent::find_asset("/offline/timeline.js");
  const agent::Asset* const style = agent::find_asset("/offline/timeline.css");
  if (script == nullptr || style == nullptr)
    return fail(
        "this build of vramtrack has no pages: node 18 with npm was missing when it was built; 'export --format "
        "chrome' "
        "writes the events for ui.perfetto.dev");
  std::string out;
  out.reserve(json.size() + script->bytes.size() + style->bytes.size() + 1024);
  out +=
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>";
  out += escape_markup(title);
  out += "</title><style>\n";
  out += style->bytes;
  out +=
      "</style></head><body>\n<main id=\"page\"><noscript>This page draws its data with a script: allow "
      "it.</noscript></main>\n"
      "<script type=\"application/json\" id=\"data\">";
  out += json;
  out += "</script>\n<script>\n";
  out += script->bytes;
  out += "</script></body></html>\n";
  return out;
}

}  // namespace vramtrack::cli
