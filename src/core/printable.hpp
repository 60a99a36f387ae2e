// Text that leaves the program is for people and their programs: valid UTF-8, with nothing that controls a terminal.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// A foreign text (a command, a device's name, a path) made harmless, for one line: valid UTF-8 without control
/// characters (C0, DEL, C1), and without characters that change the writing direction or break the line. A run of white
/// space that breaks the line or contains a tab becomes one space, so that `python -c` with several lines of code stays
/// readable; any other such character becomes '?', and each byte that is not UTF-8 becomes U+FFFD. Every output passes
/// foreign texts through this function or the next one. Pure; O(n).
std::string printable(std::string_view text);

/// The same for a text of several lines: line feeds and tabs stay, and a CR before a line feed is removed.
std::string printable_lines(std::string_view text);

/// The same for JSON as a library wrote it: in its strings, \n and \t stay, and the escapes of other control characters
/// also become '?'. REQUIRES: valid JSON, except for bytes that are not UTF-8.
std::string printable_json(std::string_view json);

}  // namespace vramtrack
