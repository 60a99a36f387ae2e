#include "source/log/stamp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/format.hpp"
#include "core/median.hpp"
#include "core/option.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::Decimal;
using logtext::is_digit;
using logtext::read_decimal;
using logtext::trim;

constexpr std::int64_t kSecond = 1'000'000'000;
/// Numbers of seconds below this (1998 as seconds since 1970) are durations: no GPU log is that old or that long.
constexpr double kEpochFrom = 9e8;

bool whole_number_text(std::string_view text, Decimal& out) {
  text = trim(text);
  return read_decimal(text, out, true) && out.length == text.size();
}

bool whole_civil(std::string_view text, DateOrder order, Civil& out) {
  text = trim(text);
  return read_civil(text, order, out) && trim(text.substr(out.length)).empty();
}

std::int64_t interval_ns(const LogOptions& options) {
  if (!options.interval_s || !(*options.interval_s > 0)) return kSecond;
  return std::max<std::int64_t>(1, from_seconds(*options.interval_s).count());
}

void warn_default_interval(const LogOptions& options, std::string_view what, std::vector<std::string>& warnings) {
  if (!options.interval_s)
    warnings.push_back(
        fmt::format("{}: one reading per second is assumed; give the true period with {} (and {} for dates)", what,
                    name_of(Option::interval), name_of(Option::start)));
}

/// Nanoseconds between two readings in a log that only counts. The time axis is then nominal, and detectors are
/// designed for readings that are a second to a few minutes apart.
constexpr double kReading_ns = 60e9;

/// The median of the steps by which whole numbers rise; nullopt if none rises.
std::optional<double> median_step(std::span<const std::string_view> samples) {
  std::vector<double> steps;
  std::optional<double> last;
  for (const std::string_view text : samples) {
    Decimal number;
    if (!whole_number_text(text, number)) continue;
    if (last && number.value() > *last) steps.push_back(number.value() - *last);
    last = number.value();
  }
  return steps.empty() ? std::nullopt : std::optional(upper_median(std::span(steps)));
}

/// Nanoseconds per count, so that readings are kReading_ns apart.
std::int64_t count_ns(std::span<const std::string_view> samples) {
  const auto step = median_step(samples);
  return step ? std::max<std::int64_t>(1, std::llround(kReading_ns / *step)) : static_cast<std::int64_t>(kReading_ns);
}

/// "05.01.2026 ...": two numbers and dots before a year.
bool is_dotted(std::string_view text) {
  text = trim(text);
  for (int number = 0; number < 2; ++number) {
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    if (digits == 0 || digits > 2 || digits == text.size() || text[digits] != '.') return false;
    text.remove_prefix(digits + 1);
  }
  return !text.empty() && is_digit(text.front());
}

/// The order of numeric dates: the only possible one, else the one that makes the recording shorter, else the customary
/// one. Dates with dots never have the month first.
DateOrder choose_order(std::span<const std::string_view> samples, std::vector<std::string>& warnings) {
  std::array<std::size_t, 2> valid{};
  std::array<double, 2> travelled_s{};
  std::array<std::int64_t, 2> last{};
  bool differ = false;
  for (const std::string_view text : samples) {
    std::array<Civil, 2> civil;
    const std::array<bool, 2> ok = {whole_civil(text, DateOrder::month_first, civil[0]),
                                    whole_civil(text, DateOrder::day_first, civil[1])};
    differ |= ok[0] != ok[1] || (ok[0] && civil[0].local_s != civil[1].local_s);
    for (std::size_t i = 0; i < 2; ++i) {
      if (!ok[i]) continue;
      if (valid[i]++ > 0) travelled_s[i] += std::abs(static_cast<double>(civil[i].local_s - last[i]));
      last[i] = civil[i].local_s;
    }
  }
  const bool dotted = !samples.empty() && is_dotted(samples.front());
  const DateOrder custom = dotted ? DateOrder::day_first : DateOrder::month_first;
  if (!differ) return custom;
  if (valid[0] != valid[1]) return valid[0] > valid[1] ? DateOrder::month_first : DateOrder::day_first;
  if (travelled_s[1] > 4 * travelled_s[0]) return DateOrder::month_first;
  if (travelled_s[0] > 4 * travelled_s[1]) return DateOrder::day_first;
  if (dotted) return custom;
  warnings.push_back(
      fmt::format("dates such as '{}' are read month first; if they are day first, write them year "
                  "first (2026-06-11)",
                  samples.empty() ? std::string() : logtext::excerpt(samples.front())));
  return custom;
}

/// Local midnight at the start of the day that contains `start`.
std::int64_t local_midnight(Timestamp start, Zone& zone) {
  const std::int64_t utc = std::chrono::floor<std::chrono::seconds>(start).time_since_epoch().count();
  const std::int64_t local = utc + (utc - zone.to_utc(utc, utc));
  const std::int64_t day = local >= 0 ? local / 86'400 : (local - 86'399) / 86'400;
  return day * 86'400;
}

}  // namespace

void StampReader::count(std::string_view what, std::int64_t each_ns) {
  base_ = {};
  unit_ns_ = each_ns;
  scale_.step = what;
  scale_.step_s = static_cast<double>(each_ns) * 1e-9;
}

StampReader StampReader::without_clock(const LogOptions& options, std::vector<std::string>& warnings) {
  StampReader reader;
  reader.kind_ = Kind::none;
  reader.unit_ns_ = interval_ns(options);
  reader.base_ = options.start.value_or(Timestamp{});
  reader.relative_ = !options.start;
  warn_default_interval(options, "the log has no clock", warnings);
  return reader;
}

StampReader StampReader::of_readings(const LogOptions& options, std::vector<std::string>& warnings) {
  if (options.interval_s || options.start) return without_clock(options, warnings);
  StampReader reader;
  reader.kind_ = Kind::none;
  reader.relative_ = true;
  reader.count("reading", static_cast<std::int64_t>(kReading_ns));
  warnings.push_back(
      fmt::format("the log has no clock and no count of steps: growth is per reading, and the time to out-of-memory "
                  "is in readings; if you know how long one reading takes, give it with {}",
                  name_of(Option::interval)));
  return reader;
}

namespace {

/// The unit of times since the start that are too far apart for seconds: nobody reads memory every eleven days.
std::int64_t unit_of_steps(std::span<const std::string_view> samples, std::vector<std::string>& warnings) {
  constexpr double kTooLong = 1e6;
  constexpr double kOfNanoseconds = 1e8;
  const auto step = median_step(samples);
  if (!step || *step < kTooLong) return kSecond;
  const bool is_nano = *step >= kOfNanoseconds;
  warnings.push_back(fmt::format(
      "times such as '{}' are too far apart for seconds: they are assumed to be {}seconds since the start; if that is "
      "wrong, title the column with its unit, for example elapsed_ms",
      logtext::excerpt(samples.back()), is_nano ? "nano" : "micro"));
  return is_nano ? 1 : 1'000;
}

}  // namespace

Result<StampReader> StampReader::detect(std::span<const std::string_view> samples, Title title,
                                        const LogOptions& options, const Zone& zone, std::vector<std::string>& warnings,
                                        std::optional<DateOrder> order) {
  if (samples.empty()) return of_readings(options, warnings);
  StampReader reader;
  reader.zone_ = zone;
  reader.base_ = options.start.value_or(Timestamp{});

  std::size_t numbers = 0;
  std::size_t dates = 0;
  std::size_t times_of_day = 0;
  double first = -1;
  for (const std::string_view text : samples) {
    Decimal number;
    Civil civil;
    if (whole_number_text(text, number)) {
      if (numbers++ == 0) first = number.value();
    } else if (whole_civil(text, DateOrder::month_first, civil) || whole_civil(text, DateOrder::day_first, civil)) {
      (civil.has_date ? dates : times_of_day) += 1;
    }
  }
  if (dates == 0 && times_of_day == 0 && numbers == 0)
    return fail(
        fmt::format("'{}' is not a time in a known format: ISO 8601, 2026/06/11 15:24:31, 06-11-2026 15:24:31, "
                    "seconds since 1970 or since the start",
                    samples.empty() ? std::string() : logtext::excerpt(samples.front())));

  if (dates >= numbers && dates >= times_of_day) {
    reader.kind_ = Kind::civil;
    reader.order_ = order ? *order : choose_order(samples, warnings);
  } else if (times_of_day > numbers) {
    reader.kind_ = Kind::time_of_day;
    reader.relative_ = !options.start;
    reader.scale_.is_time_of_day = reader.relative_;
    if (options.start) reader.day_s_ = local_midnight(*options.start, reader.zone_);
  } else {
    const double unit_s = title.unit_ns > 0 ? static_cast<double>(title.unit_ns) * 1e-9 : 1.0;
    if (first * unit_s >= kEpochFrom) {
      reader.kind_ = Kind::epoch;
      reader.base_ = Timestamp{};
      if (title.unit_ns > 0 && first * unit_s < 1e10) {
        reader.unit_ns_ = title.unit_ns;
      } else {
        // 10 digits are seconds, 13 ms, 16 us, 19 ns, whatever the title: any other unit gives an absurd date.
        reader.unit_ns_ = first < 1e11 ? kSecond : first < 1e14 ? 1'000'000 : first < 1e17 ? 1'000 : 1;
      }
    } else if (title.step || !title.counts.empty()) {
      reader.kind_ = Kind::step;
      reader.relative_ = !options.start || !options.interval_s;
      if (options.interval_s) {
        reader.unit_ns_ = interval_ns(options);
      } else {
        reader.count(title.counts.empty() ? "step" : title.counts, count_ns(samples));
        warnings.push_back(fmt::format(
            "the log counts {2} and has no clock: growth is per {0}, and the time to out-of-memory is in {2}; if "
            "you know how long one {0} takes, give it with {1}",
            reader.scale_.step, name_of(Option::interval), plural(reader.scale_.step)));
      }
    } else {
      reader.kind_ = Kind::relative;
      reader.unit_ns_ = title.unit_ns > 0 ? title.unit_ns : unit_of_steps(samples, warnings);
      reader.relative_ = !options.start;
    }
  }
  return reader;
}

bool StampReader::read(std::string_view text, Timestamp& out) {
  if (kind_ == Kind::civil) {
    if (cached_ && text.size() >= kPrefix + 2 && std::memcmp(text.data(), prefix_, kPrefix) == 0 &&
        is_digit(text[kPrefix]) && is_digit(text[kPrefix + 1])) {
      const char* p = text.data() + kPrefix;
      const char* const end = text.data() + text.size();
      const std::int64_t seconds = (p[0] - '0') * 10 + (p[1] - '0');
      p += 2;
      std::int64_t nano = 0;
      if (end - p > 1 && (*p == '.' || *p == ',' || *p == ':')) {
        std::int64_t scale = 100'000'000;
        for (++p; p != end && is_digit(*p); ++p) {
          nano += (*p - '0') * scale;
          scale /= 10;
        }
      }
      const auto left = static_cast<std::size_t>(end - p);
      if (seconds <= 60 && left == suffix_.size() && (left == 0 || std::memcmp(p, suffix_.data(), left) == 0)) {
        out = minute_ + Duration{seconds * kSecond + nano};
        return true;
      }
    }
    return read_civil_slowly(text, out);
  }
  if (kind_ == Kind::time_of_day) return read_time_of_day(text, out);
  return kind_ != Kind::none && read_number(text, out);
}

bool StampReader::read_civil_slowly(std::string_view text, Timestamp& out) {
  text = trim(text);
  Civil civil;
  if (!whole_civil(text, order_, civil) || !civil.has_date) return false;
  const std::int64_t utc_s = civil.offset_s ? civil.local_s - *civil.offset_s : zone_.to_utc(civil.local_s, last_s_);
  last_s_ = utc_s;
  out = Timestamp{std::chrono::seconds{utc_s}} + Duration{civil.nano};

  // Remember the minute for the following lines, unless the clocks may change within it.
  cached_ = text.size() >= kPrefix + 2 && text[13] == ':' && text[16] == ':' && is_digit(text[11]) &&
            is_digit(text[12]) && is_digit(text[0]) && is_digit(text[9]) && is_digit(text[17]) && is_digit(text[18]) &&
            (civil.offset_s || zone_.has_fixed_offset(civil.local_s));
  if (cached_) {
    std::memcpy(prefix_, text.data(), kPrefix);
    const int seconds = (text[17] - '0') * 10 + (text[18] - '0');
    minute_ = Timestamp{std::chrono::seconds{utc_s - seconds}};
    std::size_t rest = kPrefix + 2;
    if (rest + 1 < text.size() && (text[rest] == '.' || text[rest] == ',' || text[rest] == ':')) {
      ++rest;
      while (rest < text.size() && is_digit(text[rest])) ++rest;
    }
    suffix_.assign(text.substr(rest));
  }
  return true;
}

bool StampReader::read_number(std::string_view text, Timestamp& out) const {
  Decimal number;
  text = trim(text);
  if (!read_decimal(text, number, true) || number.length != text.size() || number.negative) return false;
  // Dates up to 2100 and durations up to 31 years: no sum of them overflows.
  const std::int64_t most_ns = kind_ == Kind::epoch ? 4'100'000'000'000'000'000 : 1'000'000'000'000'000'000;
  if (number.whole > static_cast<std::uint64_t>(most_ns / unit_ns_)) return false;
  const std::int64_t fraction =
      unit_ns_ == kSecond ? std::int64_t{number.nano}
                          : std::llround(static_cast<double>(number.nano) * 1e-9 * static_cast<double>(unit_ns_));
  out = base_ + Duration{static_cast<std::int64_t>(number.whole) * unit_ns_ + fraction};
  return true;
}

bool StampReader::read_time_of_day(std::string_view text, Timestamp& out) {
  Civil civil;
  if (!whole_civil(text, order_, civil) || civil.has_date) return false;
  constexpr std::int64_t kDay = 86'400;
  // After midnight the clock restarts, even if a program was restarted the next morning; a smaller step back is due to
  // the clock itself and is reported elsewhere.
  constexpr std::int64_t kNextDay = kDay / 4;
  if (civil.local_s < kDay && last_of_day_s_ - civil.local_s > kNextDay) day_s_ += kDay;
  last_of_day_s_ = civil.local_s;
  const std::int64_t local = day_s_ + civil.local_s;
  if (relative_) {
    out = Timestamp{std::chrono::seconds{local}} + Duration{civil.nano};
  } else {
    last_s_ = civil.offset_s ? local - *civil.offset_s : zone_.to_utc(local, last_s_);
    out = Timestamp{std::chrono::seconds{last_s_}} + Duration{civil.nano};
  }
  return true;
}

}  // namespace vramtrack
