// Source text: whether a message stands in the source of a program, not in its output.
#pragma once

#include <string_view>

#include "explain/lines.hpp"

namespace vramtrack::explain {

/// A line as only source code has it: a statement, the head of a function or a block, an import, an assignment of more
/// than a number.
bool is_source_line(std::string_view line);

/// Whether the message is
///   - the string of an assignment (`TEXT = "X"`), or the argument of a function or of a command (`grep -q "X"`);
///   - a string of an array, a table of cases or a statement of SQL that such a line opens, or of """;
///   - a string on a line whose neighbours are mostly code, and no traceback;
///   - a string on a line of source that something else shows: a traceback below `File "...", line N`, a compiler
///     ("41 |  die("X");"), pytest ("> "), a diff or grep ("src/x.py:12: ");
///   - part of a here-document: between `<<EOF` and EOF.
/// O(lines).
bool is_in_code(const Lines& lines);

}  // namespace vramtrack::explain
