#include "core/tzif.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "core/read_all.hpp"

namespace vramtrack {
namespace {

constexpr std::int64_t kDayS = 86'400;

/// Days from 1970-01-01 to the given day of the proleptic Gregorian calendar.
/// After Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
std::int64_t days_from_civil(std::int64_t year, int month, int day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

std::int64_t year_of(std::int64_t utc_s) {
  std::int64_t year = 1970 + utc_s / 31'556'952;  // a mean Gregorian year: off by one at most
  while (days_from_civil(year, 1, 1) * kDayS > utc_s) --year;
  while (days_from_civil(year + 1, 1, 1) * kDayS <= utc_s) ++year;
  return year;
}

bool is_leap(std::int64_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

std::int64_t big_endian(std::string_view bytes) {
  std::uint64_t value = (static_cast<unsigned char>(bytes.front()) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
  for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

/// The counts of a TZif header, RFC 8536 section 3.1.
struct Header {
  std::size_t is_ut = 0, is_standard = 0, leaps = 0, changes = 0, types = 0, characters = 0;
  char version = '\0';
  [[nodiscard]] std::size_t block_bytes(std::size_t time_bytes) const {
    return changes * (time_bytes + 1) + types * 6 + characters + leaps * (time_bytes + 4) + is_standard + is_ut;
  }
};

constexpr std::size_t kHeaderBytes = 44;

Result<Header> read_header(std::string_view bytes, std::size_t at) {
  if (bytes.size() < at + kHeaderBytes || bytes.substr(at, 4) != "TZif") {
    return fail(fmt::format("byte {}: expected a TZif header; this is not a compiled time zone", at));
  }
  const auto count = [&](std::size_t index) {
    return static_cast<std::size_t>(static_cast<std::uint32_t>(big_endian(bytes.substr(at + 20 + 4 * index, 4))));
  };
  Header header{count(0), count(1), count(2), count(3), count(4), count(5), bytes[at + 4]};
  // Far more than any zone has; keeps the sums below small.
  constexpr std::size_t kMost = 100'000;
  for (std::size_t index = 0; index < 6; ++index) {
    if (count(index) > kMost)
      return fail(fmt::format("byte {}: count {} is out of range", at + 20 + 4 * index, count(index)));
  }
  if (header.types == 0) return fail(fmt::format("byte {}: expected at least one kind of local time", at + 36));
  return header;
}

}  // namespace

/// Reads the POSIX TZ string of the footer, "CET-1CEST,M3.5.0,M10.5.0/3".
class TimeZone::RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  /// nullopt if the text is not such a string.
  std::optional<Rule> read() {
    Rule rule;
    std::int32_t west_s = 0;
    if (!name() || !clock(west_s)) return std::nullopt;
    rule.known = true;
    rule.standard_s = -west_s;
    if (text_.empty()) return rule;
    if (!name()) return std::nullopt;
    rule.has_summer = true;
    rule.summer_s = rule.standard_s + 3600;
    if (!text_.empty() && text_.front() != ',') {
      if (!clock(west_s)) return std::nullopt;
      rule.summer_s = -west_s;
    }
    if (!change(rule.begin) || !change(rule.end) || !text_.empty()) return std::nullopt;
    return rule;
  }

 private:
  bool take(char expected) {
    if (text_.empty() || text_.front() != expected) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool number(int& value, int most) {
    std::size_t digits = 0;
    value = 0;
    while (digits < text_.size() && digits < 4 && text_[digits] >= '0' && text_[digits] <= '9') {
      value = value * 10 + (text_[digits++] - '0');
    }
    text_.remove_prefix(digits);
    return digits > 0 && value <= most;
  }
  /// An abbreviation: letters, or anything within angle brackets.
  bool name() {
    if (take('<')) {
      const std::size_t close = text_.find('>');
      if (close == std::string_view::npos || close == 0) return false;
      text_.remove_prefix(close + 1);
      return true;
    }
    std::size_t letters = 0;
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    while (letters < text_.size() && is_letter(text_[letters])) ++letters;
    text_.remove_prefix(letters);
    return letters >= 3;
  }
  /// [+-]h[h[h]][:mm[:ss]]
  bool clock(std::int32_t& seconds) {
    const bool negative = take('-');
    if (!negative) take('+');
    int hours = 0, minutes = 0, rest = 0;
    if (!number(hours, 167)) return false;
    if (take(':') && (!number(minutes, 59) || (take(':') && !number(rest, 59)))) return false;
    seconds = hours * 3600 + minutes * 60 + rest;
    if (negative) seconds = -seconds;
    return true;
  }
  bool change(Change& into) {
    if (!take(',')) return false;
    if (take('M')) {
      into.kind = Change::Kind::month_week_day;
      if (!number(into.month, 12) || into.month < 1 || !take('.') || !number(into.week, 5) || into.week < 1 ||
          !take('.') || !number(into.day, 6)) {
        return false;
      }
    } else {
      into.kind = take('J') ? Change::Kind::day_without_leap : Change::Kind::day_with_leap;
      if (!number(into.day, 365) || (into.kind == Change::Kind::day_without_leap && into.day < 1)) return false;
    }
    return !take('/') || clock(into.time_s);
  }

  std::string_view text_;
};

Result<TimeZone> TimeZone::parse(std::string_view bytes) {
  auto header = read_header(bytes, 0);
  if (!header) return fail(header.error());
  std::size_t at = kHeaderBytes;
  std::size_t time_bytes = 4;
  if (header->version >= '2') {  // the same again with 64-bit times, then the rule
    at += header->block_bytes(4);
    header = read_header(bytes, at);
    if (!header) return fail(header.error());
    at += kHeaderBytes;
    time_bytes = 8;
  }
  if (bytes.size() < at + header->block_bytes(time_bytes)) {
    return fail(fmt::format("byte {}: expected {} bytes of table, but the file ends at byte {}", at,
                            header->block_bytes(time_bytes), bytes.size()));
  }

  const std::size_t indices = at + header->changes * time_bytes;
  const std::size_t types = indices + header->changes;
  const auto offset_of = [&](std::size_t type) {
    return static_cast<std::int32_t>(big_endian(bytes.substr(types + type * 6, 4)));
  };
  TimeZone zone;
  for (std::size_t type = 0; type < header->types; ++type) {
    // RFC 8536 requires -25 h to +26 h.
    if (offset_of(type) < -25 * 3600 || offset_of(type) > 26 * 3600) {
      return fail(
          fmt::format("byte {}: an offset of {} s from UTC is out of range", types + type * 6, offset_of(type)));
    }
  }
  zone.before_s_ = offset_of(0);
  for (std::size_t i = 0; i < header->changes; ++i) {
    const std::int64_t time_s = std::clamp(big_endian(bytes.substr(at + i * time_bytes, time_bytes)), -kFarS, kFarS);
    const auto type = static_cast<std::size_t>(static_cast<unsigned char>(bytes[indices + i]));
    if (type >= header->types)
      return fail(fmt::format("byte {}: expected an index below {}", indices + i, header->types));
    if (!zone.changes_s_.empty() && time_s < zone.changes_s_.back()) {
      return fail(fmt::format("byte {}: the changes are not in order", at + i * time_bytes));
    }
    zone.changes_s_.push_back(time_s);
    zone.offsets_s_.push_back(offset_of(type));
  }

  std::string_view footer = bytes.substr(at + header->block_bytes(time_bytes));
  if (time_bytes == 8 && footer.size() > 2 && footer.front() == '\n') {
    footer.remove_prefix(1);
    footer = footer.substr(0, footer.find('\n'));
    const auto rule = RuleReader(footer).read();
    if (!footer.empty() && !rule) {
      return fail(fmt::format("byte {}: '{}' is not a rule for the years after the table",
                              bytes.size() - footer.size() - 1, footer.substr(0, 60)));
    }
    if (rule) zone.rule_ = *rule;
  }
  return zone;
}

namespace {

Result<std::string> read_zone_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return fail(path.string() + ": no such file");
  std::ifstream in(path, std::ios::binary);
  auto bytes = read_all(in);
  if (!bytes || bytes->empty()) return fail(path.string() + ": cannot be read");
  return std::move(*bytes);
}

}  // namespace

Result<TimeZone> TimeZone::load(const std::string& name) {
  // A name must be a path within the database.
  if (name.empty() || name.front() == '/' || name.find("..") != std::string::npos) {
    return fail(fmt::format("'{}' is not the name of a time zone", name));
  }
  const char* root = std::getenv("TZDIR");
  auto bytes =
      read_zone_file(std::filesystem::path(root != nullptr && *root != '\0' ? root : "/usr/share/zoneinfo") / name);
  if (!bytes) return fail(bytes.error());
  auto zone = parse(*bytes);
  if (!zone) return fail(zone.error().during("time zone " + name));
  zone->name_ = name;
  return zone;
}

Result<TimeZone> TimeZone::machine() {
  const std::filesystem::path link = "/etc/localtime";
  auto bytes = read_zone_file(link);
  if (!bytes) return fail(bytes.error());
  auto zone = parse(*bytes);
  if (!zone) return fail(zone.error().during(link.string()));
  // The target of the link contains the name: /usr/share/zoneinfo/Europe/Berlin.
  std::error_code error;
  const std::string target = std::filesystem::read_symlink(link, error).string();
  const std::string_view marker = "zoneinfo/";
  const std::size_t found = error ? std::string::npos : target.rfind(marker);
  zone->name_ = found == std::string::npos ? "local time" : target.substr(found + marker.size());
  return zone;
}

std::int64_t TimeZone::local_seconds(const Change& change, std::int64_t year) {
  std::int64_t day = 0;
  if (change.kind == Change::Kind::month_week_day) {
    const std::int64_t first = days_from_civil(year, change.month, 1);
    const std::int64_t weekday_of_first = ((first + 4) % 7 + 7) % 7;  // 1970-01-01 was a Thursday
    day = first + (change.day - weekday_of_first + 7) % 7 + 7 * (change.week - 1);
    const std::int64_t next_month =
        change.month == 12 ? days_from_civil(year + 1, 1, 1) : days_from_civil(year, change.month + 1, 1);
    if (day >= next_month) day -= 7;  // week 5 is the last one
  } else {
    day = days_from_civil(year, 1, 1) + change.day;
    if (change.kind == Change::Kind::day_without_leap) {
      --day;  // counts from 1, and never 29 February
      if (is_leap(year) && change.day >= 60) ++day;
    }
  }
  return day * kDayS + change.time_s;
}

TimeZone::Span TimeZone::by_rule(std::int64_t utc_s) const {
  if (!rule_.has_summer) return {-kFarS, kFarS, rule_.standard_s};
  // The changes of the surrounding years: they include the last before and the first after `utc_s`.
  std::array<std::pair<std::int64_t, std::int32_t>, 8> around;
  const std::int64_t year = year_of(utc_s);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t then = year - 2 + static_cast<std::int64_t>(i);
    around[2 * i] = {local_seconds(rule_.begin, then) - rule_.standard_s, rule_.summer_s};
    around[2 * i + 1] = {local_seconds(rule_.end, then) - rule_.summer_s, rule_.standard_s};
  }
  std::sort(around.begin(), around.end());
  const auto after = std::upper_bound(around.begin(), around.end(), utc_s,
                                      [](std::int64_t time_s, const auto& change) { return time_s < change.first; });
  if (after == around.begin() || after == around.end()) return {utc_s, utc_s + 1, rule_.standard_s};
  return {std::prev(after)->first, after->first, std::prev(after)->second};
}

TimeZone::Span TimeZone::at(std::int64_t utc_s) const {
  utc_s = std::clamp(utc_s, -kFarS, kFarS);
  const auto after = std::upper_bound(changes_s_.begin(), changes_s_.end(), utc_s);
  if (after == changes_s_.end() && rule_.known) {
    Span span = by_rule(utc_s);
    if (!changes_s_.empty()) span.begin_s = std::max(span.begin_s, changes_s_.back());
    return span;
  }
  Span span{-kFarS, after == changes_s_.end() ? kFarS : *after, before_s_};
  if (after != changes_s_.begin()) {
    span.begin_s = *std::prev(after);
    span.offset_s = offsets_s_[static_cast<std::size_t>(std::distance(changes_s_.begin(), after)) - 1];
  }
  return span;
}

}  // namespace vramtrack
