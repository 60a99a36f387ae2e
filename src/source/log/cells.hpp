// Cells that hold more than a plain number: lists of amounts ("[9000, 3997]"), and numbers with a comma or a dot after
// each group of three digits, as spreadsheets write them ("3,233 MiB", "3.233").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// The parts of a list written as one text: "[9000, 3997]", "9000;3997". Empty if `text` is not a list of amounts: it
/// needs at least two, or any number of them in brackets.
std::vector<std::string_view> parts_of_list(std::string_view text);

struct ColumnPlan;

/// Whether the quoted numbers of a comma-separated table have thousands separators. Their commas may also be decimal:
/// "3,233 GiB" is left alone unless another number has two groups.
bool has_thousands(std::string_view head);

/// `text` without the commas of such numbers, which begin and end in the same line.
std::string without_thousands(std::string_view text);

/// The amount columns of a table with a header and a separator other than commas, if their numbers have dots between
/// thousands, as choose_grouping() finds. Empty: no dots, or undecidable.
std::vector<int> dotted_columns(std::string_view head, const ColumnPlan& plan);

/// `text` without the dots of the numbers in these columns.
std::string without_dots(std::string_view text, char delimiter, const std::vector<int>& columns);

}  // namespace vramtrack
