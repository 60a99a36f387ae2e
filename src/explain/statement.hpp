// Statement: a failed allocation that no wording of wordings.def knows, found by its structure: what failed, and of
// which memory. Its figures are read by the words beside them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "explain/figure.hpp"
#include "explain/wording.hpp"

namespace vramtrack::explain {

/// The words that tell of a failure, "out of GPU memory".
struct Statement {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Lines before and after a statement whose figures count.
inline constexpr std::size_t kStatementLines = 8;
/// How far these reach.
inline constexpr std::size_t kStatementBytes = 2048;

/// Words that every statement has one of, as Anchors takes them.
std::span<const std::string_view> statement_cues();

/// The statement on the line of `at`, where a cue ends. It has
///   - a lack and the memory: "out of GPU memory", "insufficient VRAM", "virtual memory exhausted"; or
///   - a failure and an allocation: "failed to allocate 339738624 bytes", "allocation of size 4096 failed"; or
///   - the code of one: CUDA_ERROR_OUT_OF_MEMORY, 0x8007000E; or
///   - an excess over a limit of memory: "uses too much shared data (0x10000 bytes, 0xc000 max)".
/// Looks at the line alone, at most kStatementBytes of it. O(1).
std::optional<Statement> read_statement(std::string_view text, std::size_t at);

/// The wording of a statement: one of a few that no program owns, by the memory that ran out. The words of the line
/// tell it, else those of the lines around it.
const Wording& wording_of(std::string_view text, const Statement& statement);
/// Of a statement whose memory is not yet asked for.
const Wording& any_statement();

/// Sets those sizes of `figures` that the line of [begin, end) tells and that are missing, then those of the lines
/// around it: what is asked for on lines that go on with it ("[requestedSpace: 343146496 B]"), what is free, in use and
/// there in all on each. Roles come from the word beside a size, before it or behind it.
/// Returns how many the line itself tells.
std::size_t read_figures(std::string_view text, std::size_t begin, std::size_t end, Figures& figures);

/// Whether `begin` stands in a row of a Markdown table that lists terms: it has less than two sizes of its own.
bool is_row_of_terms(std::string_view text, std::size_t begin);

/// The words by which the line of [begin, end), or one of the next few, tells that the program went on ("falling back
/// to pinned system memory"); empty: none does.
std::string_view went_on_words(std::string_view text, std::size_t begin, std::size_t end);

}  // namespace vramtrack::explain
