// Where a CSV log has the time of a row if no title names it: in a column, or on a line before the rows. Also how many
// GPUs the rows of one time belong to, if they have no index, or a wrong one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/columns.hpp"

namespace vramtrack {

/// A cell of a row. REQUIRES: 0 <= column < cells.
inline std::string_view cell(const std::vector<std::string_view>& row, int column) {
  return row[static_cast<std::size_t>(column)];
}
/// The time of a row as written, after its date if that has a column of its own. REQUIRES: plan.time >= 0.
inline std::string time_text(const std::vector<std::string_view>& row, const ColumnPlan& plan) {
  const std::string time(cell(row, plan.time));
  return plan.date < 0 ? time : std::string(cell(row, plan.date)) + ' ' + time;
}

/// Chooses the clock among the columns with titles: see choose_clock(). Leaves plan.time negative if there is none. Of
/// several counts, the finest is used, and the other one is kept as ColumnPlan::outer_count.
Status choose_clock_column(const std::vector<std::vector<std::string_view>>& rows, ColumnPlan& plan,
                           std::vector<std::string>& assumptions);

/// Times on lines of their own: "==== 2026-01-01 10:00:00 ====", or a date and a time of day on two lines.
class ClockLines {
 public:
  /// The time given by `line`, with the date from an earlier line; empty if it has none.
  std::string take(std::string_view line);

 private:
  std::string date_;
};

/// The clock lines in `head`.
std::vector<std::string> clock_lines(std::string_view head);

/// Handles "date; nvidia-smi --query-gpu=..." in a loop: rows without a time follow a line that is a time.
void find_clock_lines(std::string_view head, ColumnPlan& plan);

/// How many rows make up a reading: those between two lines with times, or between two headers, which start a reading
/// if the rows have no time; 1 if their number varies.
std::size_t count_rows_a_reading(std::string_view head, const ColumnPlan& plan);

/// The number of GPUs that the rows of one reading cover, in a fixed order; 1 if the rows name their GPU, or there is
/// only one. Removes the index from `plan` if it is the same for all of them. An Error if rows belong to several GPUs
/// that cannot be distinguished: merging them into one series would hide the behaviour of each.
Result<std::size_t> count_unnamed_gpus(const std::vector<std::vector<std::string_view>>& rows, std::string_view head,
                                       StampReader stamp, bool comma, ColumnPlan& plan,
                                       std::vector<std::string>& assumptions);

}  // namespace vramtrack
