// A log out of order: how it must be read, and its records in that order.
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

/// What the whole of a log says about its times.
struct LogTimes {
  LogOrder order = LogOrder::as_written;  ///< never unclear
  bool is_shuffled = false;               ///< of by_time: rows that follow one another are no neighbours in time
  std::uint64_t line = 0;                 ///< where time steps back first; 0: nowhere
  bool has_samples = false;
  Duration period{};  ///< of a stream: between two samples of a series
  Timestamp earliest{};
  Timestamp latest{};
  /// Of the times of day of a log without dates, the one that the recording begins with; nullopt: other times.
  std::optional<Timestamp> begins_at;
  std::vector<LogDevice> devices;
};

/// What the times of day of a log that was surveyed begin with, as its parser will give them. REQUIRES: samples were
/// seen.
Timestamp begin_of_day_times(const OrderSurvey& survey, LogOrder order);

/// Reads the log to its end, twice where time steps back. Errors name the file and the line: it cannot be read, or it
/// is out of order in a way that cannot be undone. REQUIRES: it can be opened again.
Result<LogTimes> survey_log(const PlannedFile& file);

/// The times of the beginning of a log, its text at hand.
OrderSurvey survey_head(const PlannedFile& file, std::string_view head);

/// The records of a log in the order of `times`, which is not as_written. What the lines have wrong that belong to no
/// record (too long, NUL bytes) is told to `rows`. Errors name the file.
Result<std::unique_ptr<RecordSorter>> sort_log(const PlannedFile& file, const LogTimes& times, LogRows& rows);

}  // namespace vramtrack
