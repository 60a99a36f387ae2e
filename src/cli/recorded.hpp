// What options say about recordings: of which kind, the log options in their final form, times as typed.
#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "core/result.hpp"
#include "core/time.hpp"
#include "recorded/recorded.hpp"

namespace vramtrack::cli {

/// Errors name the option and what it takes.
Result<LogOptions> log_options(const Options& options);

/// "2026-01-02T03:04[:05][Z|+02:00]" (without a zone: in `timezone`, empty: this machine's), or a duration
/// such as "2h": that long before `now`.
Result<Timestamp> parse_moment(const std::string& option, const std::string& text, const std::string& timezone,
                               Timestamp now);

/// The kind of the files named on the command line; without any, the store is meant. Errors: one of them is a recording
/// of another sort, for another command.
Result<const RecordedInfo*> recorded_kind(const Options& options);
/// Fails where `path` is an allocation trace, and says which command reads it.
Status refuse_trace(const std::string& path);

}  // namespace vramtrack::cli
