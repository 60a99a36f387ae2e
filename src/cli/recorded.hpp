// Recordings: their kind, the options that say how to read logs, and times as typed by the user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/arguments.hpp"
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

/// "2026-01-02T03:04[:05][Z|+02:00]" (without a zone: in `timezone`, empty: this machine's), or a duration
/// such as "2h": that long before `now`.
Result<Timestamp> parse_moment(const std::string& option, const std::string& text, const std::string& timezone,
                               Timestamp now);

/// The kind of the files named on the command line; without files, the store is meant. Errors: one of them is a
/// recording for another command.
Result<const RecordedInfo*> recorded_kind(const std::vector<std::string>& files);
/// Fails if `path` is an allocation trace, and says which command reads it.
Status refuse_trace(const std::string& path);

}  // namespace vramtrack::cli
