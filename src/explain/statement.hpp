// Statement: a failed allocation that no wording of wordings.def describes, found by its structure: what failed, and
// which memory. roles.hpp reads its figures.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "explain/wording.hpp"

namespace vramtrack::explain {

/// The words that report a failure, "out of GPU memory".
struct Statement {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Number of lines before and after a statement whose figures count.
inline constexpr std::size_t kStatementLines = 8;
/// Their extent in bytes.
inline constexpr std::size_t kStatementBytes = 2048;

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// The line of [begin, end), at most kStatementBytes / 2 to each side.
Range line_of(std::string_view text, std::size_t begin, std::size_t end);

/// Words of which every statement contains one, in the form that Anchors takes.
std::span<const std::string_view> statement_cues();

/// The statement on the line of `at`, where a cue ends. It has
///   - a lack and the memory: "out of GPU memory", "insufficient VRAM", "virtual memory exhausted"; or
///   - a failure and an allocation: "failed to allocate 339738624 bytes", "allocation of size 4096 failed"; or
///   - the code of one: CUDA_ERROR_OUT_OF_MEMORY, 0x8007000E, "CUresult error result=2"; or
///   - an end by signal 9: "exit code 137", "(exitcode: -9)"; or
///   - an excess over a limit of memory: "uses too much shared data (0x10000 bytes, 0xc000 max)".
/// Looks at the line alone, at most kStatementBytes of it. O(1).
std::optional<Statement> read_statement(std::string_view text, std::size_t at);
/// Whether `line`, in lower case, contains one.
bool has_statement(std::string_view line);

/// Whether an allocation on `line`, in lower case, asks for a negative amount. O(line).
bool asks_for_less_than_nothing(std::string_view line);

/// Whether `words`, in lower case, name a device or its interface.
bool is_of_device(std::string_view words);

/// Whether the statement's line, or one beside it, gives another reason for the failure than a lack of memory.
/// `is_known`: a wording describes it, so that only errors of the same call count.
bool has_other_reason(std::string_view text, const Statement& statement, bool is_known);

/// Whether its line names host memory, no matter what the program requests elsewhere.
bool is_on_host(std::string_view text, const Statement& statement);

/// The wording of a statement: one of a few generic ones, by the memory that ran out. The words of the line decide,
/// else those of the lines around it.
const Wording& wording_of(std::string_view text, const Statement& statement);
/// For a statement whose memory is not determined yet.
const Wording& any_statement();
/// For an allocation that failed for another reason than a lack of memory: an event.
const Wording& other_reason();

/// Whether the line of [begin, end) is the format string of a message, with a placeholder for its size: "%zu bytes", "N
/// bytes".
bool is_template(std::string_view text, std::size_t begin, std::size_t end);

/// The words in the line of [begin, end), or one of the next few, which show that the program continued ("falling back
/// to pinned system memory", "[ OK ]"); empty: none. `is_statement`: no wording defines what follows it.
std::string_view went_on_words(std::string_view text, std::size_t begin, std::size_t end, bool is_statement);

}  // namespace vramtrack::explain
