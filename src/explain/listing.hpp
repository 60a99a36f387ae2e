// Listing: whether a message is one of the errors of a list or of a table, rather than what happened.
#pragma once

#include "explain/lines.hpp"

namespace vramtrack::explain {

/// Whether the message is
///   - an item of a list beside others that are errors, below a heading or a line that ends with ':';
///   - in a row of a table (rows.hpp), whose other rows are other errors; or in its first column, if another column
///     explains it. Messages that differ in figures alone are results of runs, and so are rows with a time, a level
///     below an error, a place in code, a pid or the status of a program.
/// Not if somebody writes of themselves. O(lines).
bool is_listed(const Lines& lines);

}  // namespace vramtrack::explain
