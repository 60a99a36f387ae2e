// Quotation: separates a message that a program printed from text that only mentions one: advice, documentation, the
// code and the log of a handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrack::explain {

/// What is needed of the text before a message, and after it.
inline constexpr std::size_t kBeforeBytes = 256;
inline constexpr std::size_t kAfterBytes = 160;
/// To the remedy behind a block of code.
inline constexpr std::size_t kAnswerBytes = 600;

/// Whether the message at [begin, end) of `text` is only mentioned. It is, if it has less than two figures and one of
/// these holds:
///   - it stands in a comment, a heading, or a statement of a program that handles errors;
///   - it is a string or a term among others: "the error `X` means", ["X", "Y"], `- X: lower the batch size`;
///   - its sentence speaks of it in general (prose.hpp): "if you see X", "to avoid X", "X errors can", "it stops with
///   X";
///   - the sentence above, which introduces it, speaks to a reader: "you may see this:".
/// A message with two figures is always one: nobody needs the figures of somebody else's failure in order to mention
/// it, and people paste messages into sentences. Never reads further than kBeforeBytes and kAfterBytes. O(1).
bool is_quotation(std::string_view text, std::size_t begin, std::size_t end, std::size_t figure_count);

/// What a match is, as is_quotation() tells it.
enum class Mention : std::uint8_t {
  none,    ///< a message
  spoken,  ///< its sentence alone makes it a mention: who reports a failure may write so, too
  marked,  ///< where it stands does: code, a list, a heading, a condition, a question
};
Mention mention_of(std::string_view text, std::size_t begin, std::size_t end, std::size_t figure_count);

}  // namespace vramtrack::explain
