// Recordings: their kind, and the options that say how to read logs.
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

/// How to read logs, as typed: the zone of `start` may come from `timezone`.
struct LogArguments {
  std::string format;    ///< empty: recognised
  std::string timezone;  ///< empty: this machine's
  std::optional<std::uint64_t> capacity_bytes;
  std::string start;  ///< empty: the log says it
  std::optional<double> interval_s;
  std::string unit;          ///< empty: the log says it
  std::string line_pattern;  ///< empty: none
};

/// Declares all of LogArguments.
void add_log_arguments(Arguments& arguments, LogArguments& into);
/// All but the interval, for a command whose --interval is that of its watch.
void add_log_arguments_without_interval(Arguments& arguments, LogArguments& into);

/// Errors name the option and what it takes.
Result<LogOptions> log_options(const LogArguments& arguments);

/// The kind of the files named on the command line; without files, the store is meant. Errors: one of them is a
/// recording for another command.
Result<const RecordedInfo*> recorded_kind(const std::vector<std::string>& files);
/// The files named on the command line; without files, the user's store. Error: nothing has been recorded into it yet.
Result<std::vector<std::string>> files_or_store(const std::vector<std::string>& files, const StoreConfig& store);
/// Fails if `path` is an allocation trace, and says which command reads it; or a table of one moment that people paste
/// (explain/pasted.hpp), and says what it shows.
Status refuse_trace(const std::string& path);

}  // namespace vramtrack::cli
