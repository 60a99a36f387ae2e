// Recordings: their kind, and the options for reading logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "core/config.hpp"
#include "core/result.hpp"
#include "core/time.hpp"
#include "recorded/recorded.hpp"

namespace vramtrack::cli {

/// How to read logs, as typed; the zone of `start` may come from `timezone`.
struct LogArguments {
  std::string format;    ///< empty: recognised
  std::string timezone;  ///< empty: local
  std::optional<std::uint64_t> capacity_bytes;
  std::string start;  ///< empty: taken from the log
  std::optional<double> interval_s;
  std::string unit;          ///< empty: taken from the log
  std::string line_pattern;  ///< empty: none
};

/// Declares all of LogArguments.
void add_log_arguments(Arguments& arguments, LogArguments& into);
/// Declares all but the interval, for a command with an --interval for its watch.
void add_log_arguments_without_interval(Arguments& arguments, LogArguments& into);

/// Errors name the option and its valid values.
Result<LogOptions> log_options(const LogArguments& arguments);

/// The kind of the files named on the command line, or of the store if there are none. Errors: one of them is a
/// recording for another command.
Result<const RecordedInfo*> recorded_kind(const std::vector<std::string>& files);
/// The files named on the command line, or the user's store if there are none. Error: the store has no recording yet.
Result<std::vector<std::string>> files_or_store(const std::vector<std::string>& files, const StoreConfig& store);
/// Fails if `path` is an allocation trace, naming the command that reads it, or a table of a single moment that people
/// paste (explain/pasted.hpp), naming what it shows.
Status refuse_trace(const std::string& path);

}  // namespace vramtrack::cli
