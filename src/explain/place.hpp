// Place: where in a text a message stands. A string constant in code, a help text, a list of errors and an example in a
// document look like a failure of a program, figures included; what stands around them shows that they are none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrack::explain {

/// How much of the text around a message decides its place.
inline constexpr std::size_t kPlaceBeforeBytes = 4096;
inline constexpr std::size_t kPlaceAfterBytes = 2048;

enum class Place : std::uint8_t {
  run,      ///< the output of a program, or a person's report of it
  code,     ///< a string in the source of a program
  help,     ///< the description of an option
  list,     ///< one of the errors of a list
  example,  ///< a block of a document
  change,   ///< the description of a change of code
};

/// The place of the message at [begin, end) of `text`, by what stands around it, never by its own words:
///   - code: it is a string in the source of a program, as source_text.hpp describes;
///   - help: its line begins with an option (`--max-mem N   X`), or continues the description of one below "usage:";
///   - list: it is an item of a list, a row of a table or a string of an array of errors, as listing.hpp describes;
///   - example: it stands alone in a fenced or an indented block that a line ending with ':' introduces. That line is
///     reStructuredText ("::"), or addresses a reader, or the text is a document (`is_document`) that speaks of the
///     block: the line is a sentence ("It prints:"; "Output:" is a label), or further text follows the block.
///   - change: its line is a sentence, the text shows a diff, and nobody writes of themselves; or it is the text of a
///     commit in the output of `git log`.
/// Neither a list nor an example, if somebody writes of themselves, or the line that introduces it reports what
/// happened. A block that has what only a run writes (a time, a level, a place in code, a traceback, a prompt, a pid,
/// the status of a program that ended, an address, a path of a user, more than three lines) is a run, wherever it is
/// pasted. Never reads further than kPlaceBeforeBytes and kPlaceAfterBytes. O(1).
Place place_of(std::string_view text, std::size_t begin, std::size_t end, bool is_document);

/// Whether `text` begins with its title, as documents do and reports and logs do not: "# Title", "Title" over a line of
/// "=", "<h1>". O(its first lines).
bool begins_with_title(std::string_view text);

}  // namespace vramtrack::explain
