// Rows: the cells of the table around a message, in whichever way a text shows one.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "explain/lines.hpp"

namespace vramtrack::explain {

struct Rows {
  std::vector<std::string_view> titles;            ///< of the columns; at least two
  std::vector<std::vector<std::string_view>> all;  ///< near the message's, without the titles; none is empty
  std::size_t own = 0;                             ///< the row of the message
  std::size_t column = 0;                          ///< its cell in that row
};

/// The table of the message, if it has titles: in Markdown or ASCII (`| a | b |` above a line of dashes), HTML, CSV,
/// aligned below a line of dashes, a "list-table" of reStructuredText, or an object of JSON per line, all with the same
/// keys. nullopt: the message stands in none. O(lines).
std::optional<Rows> rows_of(const Lines& lines);

/// The string of the message, then the others of its array of JSON or YAML, or those of keys that differ in their
/// number alone ("E12": "X"). Empty: the message is no such string. O(lines).
std::vector<std::string_view> strings_of(const Lines& lines);

}  // namespace vramtrack::explain
