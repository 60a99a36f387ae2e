// Logs out of order: how to read them, and how to put their records in order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/result.hpp"
#include "source/log/order.hpp"
#include "source/log/record_sorter.hpp"
#include "source/log/roster.hpp"

namespace vramtrack {

struct PlannedFile;
class LogRows;

/// The findings about a log's times, from the whole log.
struct LogTimes {
  LogOrder order = LogOrder::as_written;  ///< never unclear
  bool is_shuffled = false;               ///< for by_time: consecutive rows are not neighbours in time
  std::uint64_t line = 0;                 ///< the line where time first steps back; 0: it never does
  bool has_samples = false;
  Duration period{};  ///< for a stream: time between two samples of a series
  Timestamp earliest{};
  Timestamp latest{};
  /// For a log of times of day without dates: the time at which the recording begins; nullopt: other times.
  std::optional<Timestamp> begins_at;
  std::vector<LogDevice> devices;
};

/// The first time of day of a surveyed log, as its parser will return it. REQUIRES: samples were
/// seen.
Timestamp begin_of_day_times(const OrderSurvey& survey, LogOrder order);

/// Reads the log to its end, twice if time steps back. Errors name the file and the line: it cannot be read, or it is
/// irrecoverably out of order. REQUIRES: it can be opened again.
Result<LogTimes> survey_log(const PlannedFile& file);

/// Surveys the times at the start of a log; `head` is its text.
OrderSurvey survey_head(const PlannedFile& file, std::string_view head);

/// The records of a log in the order of `times`, which is not as_written. Problems with lines that belong to no record
/// (too long, NUL bytes) are reported to `rows`. Errors name the file.
Result<std::unique_ptr<RecordSorter>> sort_log(const PlannedFile& file, const LogTimes& times, LogRows& rows);

}  // namespace vramtrack
