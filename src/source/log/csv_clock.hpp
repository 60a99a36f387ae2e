// Where a CSV log has the time of a row: in a column whose title does not say so, or on a line before the rows.
#pragma once

#include <string>
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

/// Times on lines of their own: "==== 2026-01-01 10:00:00 ====", or a date and a time of day on two lines.
class ClockLines {
 public:
  /// The time that `line` gives, with the date before it; empty: none.
  std::string take(std::string_view line);

 private:
  std::string date_;
};

/// Those of a log.
std::vector<std::string> clock_lines(std::string_view head);

/// "date; nvidia-smi --query-gpu=..." in a loop: rows without a time follow a line that is a time.
void settle_clock_lines(std::string_view head, ColumnPlan& plan);

/// How many rows make a reading: those between two lines with times, or between two headers, which begin a reading of a
/// log without a time in its rows; 1 when their number varies.
std::size_t count_rows_a_reading(std::string_view head, const ColumnPlan& plan);

}  // namespace vramtrack
