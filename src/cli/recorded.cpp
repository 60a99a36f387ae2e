#include "cli/recorded.hpp"

#include <fmt/format.h>

#include <limits>

#include "source/log/stamp.hpp"
#include "source/log/zone.hpp"
#include "trace/format.hpp"

namespace vramtrack::cli {

Result<Timestamp> parse_moment(const std::string& option, const std::string& text, const std::string& timezone,
                               Timestamp now) {
  if (const auto ago = parse_duration_s(text)) return now - from_seconds(*ago);
  Civil civil;
  if (!read_civil(text, DateOrder::month_first, civil) || !civil.has_date || civil.length != text.size())
    return fail(fmt::format(
        "{} '{}' is no time; write for example 2026-01-02T03:04, 2026-01-02T03:04:05Z, or 2h for two hours before now",
        option, text));
  std::int64_t utc_s = civil.local_s;
  if (civil.offset_s) {
    utc_s -= *civil.offset_s;
  } else {
    auto zone = Zone::open(timezone);
    if (!zone) return fail(zone.error().during(option));
    utc_s = zone->to_utc(civil.local_s, std::numeric_limits<std::int64_t>::min());
  }
  return Timestamp{std::chrono::seconds{utc_s}} + std::chrono::nanoseconds{civil.nano};
}

Result<LogOptions> log_options(const Options& o) {
  LogOptions logs;
  logs.format = o.input_format;
  logs.timezone = o.timezone;
  logs.capacity_bytes = o.capacity_bytes;
  logs.interval_s = o.sample_interval_s;
  logs.unit = o.unit;
  if (!o.start.empty()) {
    const auto now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
    const auto start = parse_moment("--start", o.start, o.timezone, now);
    if (!start) return fail(start.error());
    logs.start = *start;
  }
  return logs;
}

Status refuse_trace(const std::string& path) {
  const trace::TraceFormatInfo* const format = trace::recognise_trace_file(path, trace::kSure);
  if (format == nullptr) return {};
  return fail(fmt::format("{}: is an allocation trace ({}: {}); 'vramtrack snapshot summary' reads it", path,
                          format->name, format->help));
}

Result<const RecordedInfo*> recorded_kind(const Options& options) {
  for (const std::string& file : options.files)
    if (const Status other = refuse_trace(file); !other) return fail(other.error());
  return options.files.empty() ? find_recorded("store") : &recorded_at(options.files.front());
}

}  // namespace vramtrack::cli
