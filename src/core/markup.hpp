// Foreign text within a language of marks: HTML, SVG and XML, Markdown, Slack's messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack {

enum class Markup : std::uint8_t {
  /// Character data or a quoted attribute of HTML, SVG or XML: the five characters of markup by name, control
  /// characters
  /// other than newline and tab as '?'.
  xml,
  /// GitHub's Markdown: no link, tag, table's bar, mention or line of its own.
  markdown,
  /// Slack's mrkdwn, which names three characters only: no link and no mention.
  slack,
};

/// `text` so that it means itself. Bytes that are no UTF-8 stay as they are. Pure; O(n).
std::string escape_markup(std::string_view text, Markup markup = Markup::xml);

}  // namespace vramtrack
