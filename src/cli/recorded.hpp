// Recordings for replay and analyze: the log options in their final form, times as typed.
#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "core/result.hpp"
#include "core/time.hpp"
#include "source/log/recording.hpp"

namespace vramtrack::cli {

/// Errors name the option and what it takes.
Result<LogOptions> log_options(const Options& options);

/// "2026-01-02T03:04[:05][Z|+02:00]" (without a zone: in `timezone`, empty: this machine's), or a duration
/// such as "2h": that long before `now`.
Result<Timestamp> parse_moment(const std::string& option, const std::string& text, const std::string& timezone,
                               Timestamp now);

/// Whether `path` begins as an SQLite file does; false when it cannot be read (whoever opens it says why).
bool is_store(const std::string& path);

}  // namespace vramtrack::cli
