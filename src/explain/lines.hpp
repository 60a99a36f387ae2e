// Lines: the lines around a message, from which place.hpp decides where it stands.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace vramtrack::explain {

inline constexpr std::string_view kBlanks = " \t\r";

/// The lines of a message and those around it, without their ends. The text must outlive them.
struct Lines {
  std::vector<std::string_view> all;  ///< at least one
  std::size_t own = 0;                ///< the line where the message begins
  std::size_t last = 0;               ///< the line where it ends
  std::string_view before;            ///< what stands before the message on its line

  /// Of the message at [begin, end) of `text`: at most kPlaceBeforeBytes and kPlaceAfterBytes around it.
  Lines(std::string_view text, std::size_t begin, std::size_t end);
};

std::size_t indent_of(std::string_view line);
bool is_blank(std::string_view line);
bool is_fence(std::string_view line);
/// Whether the line at `at` is a heading: "# Errors", "<h2>Errors</h2>", or the line that underlines one.
bool is_heading(const Lines& lines, std::size_t at);
/// A character of a name in code: a letter, a digit or '_'.
bool is_name_char(char c);

/// Whether somebody writes of themselves: then a block, a list or a table is what happened to them.
bool has_writer(const Lines& lines);

/// Whether a line that introduces others reports what happened: "2 errors occurred:", "It failed with:". A participle
/// behind an article, or of the present, does not: "An expected error:", "It is raised so:".
bool reports_past(std::string_view line);

/// Whether `words`, in lower case, have what a run alone has: the status of a program that ended, the number of a
/// process, an address, a path below the folder of a user.
bool has_fact_of_run(std::string_view words);
/// Whether `words`, in lower case, have a time, a date or a place in code: "12:00:01", "2026-03-01", "train.py:12".
bool has_time_or_place(std::string_view words);

}  // namespace vramtrack::explain
