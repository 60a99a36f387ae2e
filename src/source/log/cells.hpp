// How the numbers in a text separate thousands and fractions: "7,340.5" or "7.340,5". A number such as "4.000 MB" is
// ambiguous by itself; other numbers in its log, and the language of its words, may resolve it. Also cells of tables
// that hold more than a plain number: lists of amounts ("[9000, 3997]"), and numbers grouped as in spreadsheets ("3,233
// MiB").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// The parts of a list written as one text: "[9000, 3997]", "9000;3997". Empty if `text` is not a list of amounts: it
/// needs at least two, or any number of them in brackets.
std::vector<std::string_view> parts_of_list(std::string_view text);

struct ColumnPlan;

/// Whether the quoted numbers in a comma-separated table have thousands separators. Their commas may also be decimal:
/// "3,233 GiB" is left alone unless another number has two groups.
bool has_thousands(std::string_view head);

/// `text` without the commas of such numbers, which begin and end in the same line.
std::string without_thousands(std::string_view text);

/// The amount columns of a table with a header and a separator other than commas, if dots separate thousands in their
/// numbers according to choose_grouping(). Empty: no dots, or undecidable.
std::vector<int> dotted_columns(std::string_view head, const ColumnPlan& plan);

/// `text` without the dots of the numbers in these columns.
std::string without_dots(std::string_view text, char delimiter, const std::vector<int>& columns);

enum class Grouping : std::uint8_t {
  by_comma,  ///< 7,340.5
  by_dot,    ///< 7.340,5
};

/// The number in `digits` ("7,340", "2,89", "12.5") before a unit of `unit_bytes`; negative if it is not a number. A
/// number that shows its own grouping is read by it: "2,89", "7.340.000", "2,890 GB", since no card has 2890 GB. `open`
/// resolves an ambiguous one: "4.000" is 4 by comma, and 4000 by dot.
double read_number(std::string_view digits, std::uint64_t unit_bytes, Grouping open = Grouping::by_comma);

/// The grouping shown by `digits` before a unit of `unit_bytes` (0: no unit); nullopt if they show none.
std::optional<Grouping> shown_grouping(std::string_view digits, std::uint64_t unit_bytes);

/// Whether `digits` have one separator that may separate thousands or a fraction: "4.000".
bool is_open_number(std::string_view digits, std::uint64_t unit_bytes);

/// An amount of memory as written in its log.
struct WrittenAmount {
  std::string_view digits;
  std::uint64_t unit_bytes = 0;  ///< 0: no unit is written
  bool is_total = false;
  bool is_german = false;  ///< its label has a word of a language that uses dots for thousands
  std::string label;       ///< equal for amounts of one kind
};

struct GroupingChoice {
  Grouping grouping = Grouping::by_comma;
  bool is_unknown = false;   ///< undecidable: a card could hold either
  std::string_view example;  ///< an amount with an unclear grouping
};

/// The warning for amounts such as `example`, before a unit of `unit_bytes`, with an unclear grouping.
std::string unknown_grouping(std::string_view example, std::uint64_t unit_bytes);

/// Decides from all `amounts` in a log, and from the other numbers in `lines`.
GroupingChoice choose_grouping(std::span<const WrittenAmount> amounts, std::span<const std::string_view> lines);

}  // namespace vramtrack
