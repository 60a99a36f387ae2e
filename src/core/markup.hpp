// Foreign text within HTML, SVG and XML.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// `text` as character data or within a quoted attribute: the five characters of markup by name, control characters
/// other than newline and tab as '?'. Bytes that are no UTF-8 stay as they are. Pure; O(n).
std::string escape_markup(std::string_view text);

}  // namespace vramtrack
