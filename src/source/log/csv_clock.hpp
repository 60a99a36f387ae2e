// Where the time of a row of a CSV log stands: in a column whose title does not say so, or on a line before the rows.
#pragma once

#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/columns.hpp"

namespace vramtrack {

/// Finds the clock of a table with titles none of which names a time: the one column that holds dates with times of
/// day, else the one that holds times of day that rise. Leaves `plan` as it is when there is none; an Error names the
/// columns when several could be.
Status settle_clock_column(const std::vector<std::vector<std::string_view>>& rows, ColumnPlan& plan);

/// The times that stand on lines of their own.
std::vector<std::string_view> clock_lines(std::string_view head);

/// "date; nvidia-smi --query-gpu=..." in a loop: rows without a time after a line that is one.
void settle_clock_lines(std::string_view head, ColumnPlan& plan);

/// How many rows come after each date, 1 when their number differs.
std::size_t count_rows_a_date(std::string_view head, const ColumnPlan& plan);

}  // namespace vramtrack
