// Quotation: separates a message that a program printed from text that only mentions one: advice, documentation, the
// code and the log of a handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrack::explain {

/// How much of the text before and after a message is examined.
inline constexpr std::size_t kBeforeBytes = 256;
inline constexpr std::size_t kAfterBytes = 160;
/// Distance to a remedy after a code block.
inline constexpr std::size_t kAnswerBytes = 600;

/// The kind of a match.
enum class Mention : std::uint8_t {
  none,    ///< a message
  spoken,  ///< only its sentence makes it a mention: a person reporting a failure may write so, too
  marked,  ///< its position does: code, a list, a heading, a condition, a question
};
/// Whether the message at [begin, end) of `text` is only mentioned. It is, if it has less than two figures and one of
/// these holds:
///   - it is in a comment, a heading, or a statement of a program that handles errors;
///   - it is a string or a term among others: "the error `X` means", ["X", "Y"], `- X: lower the batch size`;
///   - its sentence mentions it in general (prose.hpp): "if you see X", "to avoid X", "X errors can", "it stops with
///   X";
///   - the sentence above, which introduces it, addresses a reader: "you may see this:".
/// A message with two figures is one wherever its place (place.hpp) is a run: mentioning a failure does not require its
/// figures, and people paste messages into sentences. Never reads further than kBeforeBytes and kAfterBytes. O(1).
Mention mention_of(std::string_view text, std::size_t begin, std::size_t end, std::size_t figure_count);

}  // namespace vramtrack::explain
