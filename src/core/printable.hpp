// What leaves the program is text for people and their programs: valid UTF-8, and nothing that steers a terminal.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// A foreign text (a command, a device's name, a path) made harmless, for one line: valid UTF-8 without control
/// characters (C0, DEL, C1), without characters that turn the direction of writing or break the line. Each of these
/// becomes '?', each byte that is no UTF-8 becomes U+FFFD. Every output passes foreign texts through this or the next
/// function. Pure; O(n).
std::string printable(std::string_view text);

/// The same for a text of several lines: line feeds and tabs stay, and a CR before a line feed goes.
std::string printable_lines(std::string_view text);

/// The same for JSON as a library wrote it: in its strings, \n and \t stay, and the escapes of other control characters
/// become '?', too. REQUIRES: valid JSON but for bytes that are no UTF-8.
std::string printable_json(std::string_view json);

/// A JSON value of nlohmann's as such text: every document that leaves is made here. Bytes that are no UTF-8 become
/// U+FFFD; nothing throws. `indent`: as its dump(), -1 for one line.
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
  return printable_json(value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace vramtrack
