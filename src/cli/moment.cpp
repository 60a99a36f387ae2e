#include "cli/moment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/format.hpp"
#include "core/units.hpp"
#include "core/zone.hpp"
#include "source/log/stamp.hpp"
#include "source/tick_reader.hpp"

namespace vramtrack::cli {
namespace {

constexpr std::int64_t kDay_s = 86'400;
constexpr std::int64_t kAnyTime_s = std::numeric_limits<std::int64_t>::min();

/// The time that a clock in `zone` shows at `utc_s`.
std::int64_t local_s(Zone& zone, std::int64_t utc_s) {
  std::int64_t local = utc_s;
  // First the offset at about that time, then that at the time itself, because it may have changed in between.
  for (int i = 0; i < 2; ++i) local = utc_s + (local - zone.to_utc(local, kAnyTime_s));
  return local;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  const std::string_view rest = text.substr(word.size());
  if (!rest.empty() && rest.front() != ' ') return false;
  text = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
  return true;
}

/// Days before today; nullopt if the text does not begin with the name of a day.
std::optional<std::int64_t> take_day(std::string_view& text) {
  if (take(text, "today")) return 0;
  if (take(text, "yesterday")) return 1;
  return std::nullopt;
}

}  // namespace

Result<Timestamp> parse_moment(const std::string& option, const std::string& text, const std::string& timezone,
                               Timestamp now) {
  std::string_view rest = text;
  if (rest == "now") return now;
  const auto day = take_day(rest);
  Civil civil;
  const bool is_read = read_civil(rest, DateOrder::month_first, civil) && civil.length == rest.size();
  if (day ? rest.empty() || (is_read && !civil.has_date) : is_read) {
    std::int64_t utc_s = civil.local_s;
    if (civil.has_date && civil.offset_s) {
      utc_s -= *civil.offset_s;
    } else {
      auto zone = Zone::open(timezone);
      if (!zone) return fail(zone.error().during(option));
      std::int64_t wanted_s = civil.local_s;
      if (!civil.has_date) {
        const std::int64_t now_s = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
        const std::int64_t today_s = local_s(*zone, now_s) / kDay_s * kDay_s;
        wanted_s = today_s - day.value_or(0) * kDay_s + (rest.empty() ? 0 : civil.local_s);
      }
      utc_s = zone->to_utc(wanted_s, kAnyTime_s);
    }
    return Timestamp{std::chrono::seconds{utc_s}} + std::chrono::nanoseconds{civil.nano};
  }
  constexpr std::string_view kAgo = " ago";
  if (rest.ends_with(kAgo)) rest.remove_suffix(kAgo.size());
  const auto before_s = typed_duration_s(rest);
  if (before_s) return now - from_seconds(*before_s);
  if (const bool is_number = text.find_first_not_of("0123456789.") == std::string::npos; is_number && !text.empty())
    return fail(before_s.error().during(option));
  return fail(fmt::format(
      "{} '{}' is not a time; write, for example, 2026-01-02T03:04, 2026-01-02T03:04:05Z, yesterday, 14:30, or "
      "2h for two hours before now",
      option, text));
}

void add_period(Arguments& arguments, PeriodArguments& into, std::string since_help, std::string until_help) {
  if (since_help.empty())
    since_help = "Start at this time, for example 2026-01-02T03:04, yesterday, or 8h (before now)";
  arguments.option("--since", "TIME", std::move(since_help), text(into.since))
      .in_manual(
          "A time without a zone is local; Z or an offset such as +02:00 names its zone. Also: today, yesterday 14:30, "
          "14:30 (today), 2 hours ago.");
  arguments.option("--until", "TIME", until_help.empty() ? "End before this time" : std::move(until_help),
                   text(into.until));
}

Result<TimeRange> time_range(const PeriodArguments& period, const std::string& timezone, Timestamp now, bool from_end) {
  TimeRange range;
  if (!period.until.empty()) {
    const auto moment = parse_moment("--until", period.until, timezone, now);
    if (!moment) return fail(moment.error());
    range.to = *moment;
  }
  if (!period.since.empty()) {
    const auto moment = parse_moment("--since", period.since, timezone, from_end ? range.to.value_or(now) : now);
    if (!moment) return fail(moment.error());
    range.from = *moment;
  }
  if (range.from && range.to && *range.from >= *range.to) return fail("--since must be before --until");
  return range;
}

std::string outside_period(const TicksRead& read, const TimeRange& asked, const Catalog& catalog) {
  if (!read.first || (!asked.from && !asked.to)) return {};
  std::string words = ": it is " + extent_words(read, asked, catalog);
  if (asked.from) words += ", --since is " + format_moment(*asked.from, false);
  if (asked.to) words += ", --until is " + format_moment(*asked.to, false);
  return words;
}

}  // namespace vramtrack::cli
