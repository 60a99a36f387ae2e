// Time as data: every sample carries its own time; nothing below the engine reads a clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack {

/// Nanoseconds since 1970-01-01T00:00:00Z. Recordings with relative time start at the epoch;
/// see Catalog::clock_is_relative.
using Timestamp = std::chrono::sys_time<std::chrono::nanoseconds>;
using Duration = std::chrono::nanoseconds;

/// Signed seconds from `from` to `to`.
inline double seconds_between(Timestamp from, Timestamp to) {
  return static_cast<double>((to - from).count()) * 1e-9;
}

/// Converts seconds (rounded to the nearest nanosecond) to a Duration; saturates at about 292 years.
Duration from_seconds(double seconds);

/// "2026-01-02T03:04:05Z", or with milliseconds when they are not zero ("…05.250Z").
std::string iso8601(Timestamp time);

/// Parses "30s", "5min", "1.5h", "2d", "250ms" or a plain number of seconds. Errors name the text
/// and the accepted units.
Result<double> parse_duration_s(std::string_view text);

/// Parses "24GiB", "24G", "512MiB", "40 GB", "1073741824". Binary multiples for K/M/G/T and KiB..TiB;
/// powers of ten only for kB/MB/GB/TB written that way, except that GPU tools write MB for 2^20, which
/// callers reading such tools handle themselves.
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace vramtrack
