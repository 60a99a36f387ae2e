// Where a CSV log has the time of a row: in a column whose title does not say so, or on a line before the rows.
#pragma once

#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/columns.hpp"

namespace vramtrack {

/// Finds the clock of a table whose titles do not name a time: the one column that holds dates with times of day, else
/// the one that holds rising times of day. Leaves `plan` unchanged when there is none; when several columns could be
/// the clock, an Error names them.
Status settle_clock_column(const std::vector<std::vector<std::string_view>>& rows, ColumnPlan& plan);

/// A column titled as a time may be how long a step took: where a column of counts rises and it does not, the counts
/// are taken. Of several counts the finest is taken, and the other kept as ColumnPlan::outer_count.
void settle_count_column(const std::vector<std::vector<std::string_view>>& rows, ColumnPlan& plan);

/// The times that are on lines of their own.
std::vector<std::string_view> clock_lines(std::string_view head);

/// "date; nvidia-smi --query-gpu=..." in a loop: rows without a time follow a line that is a time.
void settle_clock_lines(std::string_view head, ColumnPlan& plan);

/// How many rows follow each date; 1 when the number varies.
std::size_t count_rows_a_date(std::string_view head, const ColumnPlan& plan);

}  // namespace vramtrack
