// Figures as people read them: MiB, minutes and per cent. The only place where bytes, seconds and ratios are converted
// to those. Pure; every function takes any double and never prints "nan" or "inf". Figures of a recording, which may
// count steps or have no unit, are formatted by its Scale (core/scale.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/printable.hpp"
#include "core/time.hpp"
#include "core/verdict.hpp"

namespace vramtrack {

/// "12.3 GiB" from 1 GiB on, otherwise "512 MiB".
std::string format_bytes(double bytes);
inline std::string format_bytes(std::uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}
/// "12.3/24.0 GiB": both in the unit of the larger one.
std::string format_bytes_of(double used_bytes, double capacity_bytes);
/// "+12.4 MiB/min"; "-0.30 MiB/min"; "0 MiB/min" when it rounds to nothing; "+17.0 GiB/min" from 10 GiB/min on.
std::string format_rate(double bytes_per_s);
/// "+12.4", "+17408": always in MiB/min, for a column with that heading.
std::string format_mib_per_min(double bytes_per_s);
/// "+50.0 MiB/min (48.0 to 52.3)"; without the brackets when they would repeat the figure.
std::string format_rate(const Interval& bytes_per_s);
/// "12.3 GiB", "45.6 MiB", "7.8 KiB", "90 bytes": for sizes of any magnitude side by side; "-1.0 MiB" below zero.
std::string format_size(std::uint64_t bytes);
std::string format_size(std::int64_t bytes);
/// "+12.3 MiB", "-1.0 KiB", "0 bytes".
std::string format_change(std::int64_t bytes);
/// "0.31 MiB/iteration": what each repetition of a body adds to memory; `unit` is the user's word for a repetition.
std::string format_growth(double bytes_per_iteration, std::string_view unit = "iteration");
/// "12,345".
std::string format_number(std::uint64_t number);
/// "sites", "batches".
std::string plural(std::string_view noun);
/// "1 site", "2 sites", "12,345 sites".
std::string format_count(std::uint64_t count, std::string_view noun);
/// "20ms", "45s", "38m", "1h 05m", "3d 04h", "over 10 years".
std::string format_duration(double seconds);
/// "0h 47m (38m–1h 05m)": from one minute on, the middle always has hours; the bounds are short.
std::string format_eta(const Interval& seconds);

/// "out of memory in 0h 24m (19m–30m)"; "out of memory now" under a second.
std::string format_oom(const Interval& seconds);
/// 0.97 -> "97 %"; "under 1 %" and "over 99 %" rather than a misleading 0 or 100.
std::string format_percent(double ratio);
/// "0.982"
std::string format_r_squared(double r_squared);
/// A moment, to the second: "2026-01-02T03:04:05Z" (within LocalTimes, core/local_time.hpp, "2026-01-02 04:04:05"), or
/// "1h 05m 07s after the start" if times are not dates.
std::string format_moment(Timestamp time, bool clock_is_relative);

/// Columns that a UTF-8 text occupies on a terminal (counted in code points).
std::size_t columns(std::string_view utf8);
/// Pads with spaces to `width` columns, or truncates and ends in "…".
std::string fit(std::string_view utf8, std::size_t width);
/// Like fit, but right-aligned and never truncated.
std::string fit_right(std::string_view utf8, std::size_t width);

/// A rate in a suitable unit, for sentences: "50.1 MiB/min"; "1.5 GiB/min" from 1024 MiB/min on; "12.0 MiB/h"
/// below 1 MiB/min.
std::string format_scaled_rate(double bytes_per_s);
/// A length of time to two figures, for sentences: "45 s", "38 min", "2.5 h", "3.1 d".
std::string format_span(double seconds);

}  // namespace vramtrack
