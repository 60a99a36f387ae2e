// Foreign text within a markup language: HTML, SVG and XML, Markdown, Slack's messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack {

enum class Markup : std::uint8_t {
  /// Character data or a quoted attribute of HTML, SVG or XML: the five characters of
  /// markup become named entities, and control characters other than newline and tab become
  /// '?'.
  xml,
  /// GitHub's Markdown: the text cannot create a link, tag, table bar, mention or line of its own.
  markdown,
  /// Slack's mrkdwn, which escapes only three characters: the text cannot create a link or a mention.
  slack,
};

/// `text` escaped so that it appears literally. Bytes that are not UTF-8 stay as they are. Pure; O(n).
std::string escape_markup(std::string_view text, Markup markup = Markup::xml);

}  // namespace vramtrack
