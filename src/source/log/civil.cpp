// Parses dates and times as tools commonly write them: read_civil().
#include <algorithm>
#include <array>
#include <chrono>

#include "source/log/stamp.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};

/// A cursor over the text being read.
struct Cursor {
  std::string_view text;
  std::size_t at = 0;

  [[nodiscard]] char peek(std::size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at;
    return true;
  }
  void spaces() {
    while (peek() == ' ') ++at;
  }
  /// Takes the first of `words` that occurs here.
  bool take_any(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words)
      if (text.substr(at).starts_with(word)) {
        at += word.size();
        return true;
      }
    return false;
  }
  /// Reads up to `most` digits; returns the number of digits read.
  int number(int most, int& value) {
    int digits = 0;
    value = 0;
    while (digits < most && is_digit(peek())) {
      value = value * 10 + (text[at++] - '0');
      ++digits;
    }
    return digits;
  }
  std::string_view letters() {
    const std::size_t from = at;
    while (is_ascii_letter(peek())) ++at;
    return text.substr(from, at - from);
  }
};

std::optional<std::int64_t> day_seconds(int year, int month, int day) {
  if (year < 1970 || year > 2100 || month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  const std::chrono::year_month_day ymd{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                        std::chrono::day{static_cast<unsigned>(day)}};
  if (!ymd.ok()) return std::nullopt;
  return std::chrono::sys_days{ymd}.time_since_epoch().count() * std::int64_t{86'400};
}

int month_named(std::string_view word) {
  if (word.size() < 3) return 0;
  for (std::size_t i = 0; i < kMonths.size(); ++i)
    if (logtext::same_letters(word.substr(0, 3), kMonths[i])) return static_cast<int>(i) + 1;
  return 0;
}

/// Reads "+02:00", "-0430", "+02" or Z / UTC / GMT at the cursor; other letters are a zone's abbreviation and skipped.
void read_offset(Cursor& c, Civil& out) {
  const std::size_t before = c.at;
  c.spaces();
  if (is_ascii_letter(c.peek())) {
    const std::string_view word = c.letters();
    if (word == "Z" || word == "UTC" || word == "GMT") out.offset_s = 0;
    if (word.size() > 5 || (word.size() == 1 && word != "Z")) c.at = before;
    return;
  }
  const char sign = c.peek();
  if ((sign == '+' || sign == '-') && is_digit(c.peek(1)) && is_digit(c.peek(2))) {
    ++c.at;
    int hours = 0;
    int minutes = 0;
    c.number(2, hours);
    const std::size_t after_hours = c.at;
    c.take(':');
    if (c.number(2, minutes) != 2) {
      minutes = 0;
      c.at = after_hours;
    }
    if (hours <= 14 && minutes < 60) {
      out.offset_s = (hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
      return;
    }
  }
  c.at = before;
}

/// The fraction of a second at the cursor, if any.
void read_fraction(Cursor& c, Civil& out) {
  if ((c.peek() != '.' && c.peek() != ',' && c.peek() != ':') || !is_digit(c.peek(1))) return;
  ++c.at;
  std::uint32_t scale = 100'000'000;
  for (; is_digit(c.peek()); ++c.at) {
    out.nano += static_cast<std::uint32_t>(c.peek() - '0') * scale;
    scale /= 10;
  }
}

/// "23时50分00秒" after its hours, in Chinese, Japanese or Korean; the seconds may be missing.
bool read_named_minutes(Cursor& c, Civil& out, int& minutes, int& seconds) {
  c.spaces();
  if (c.number(2, minutes) == 0 || minutes > 59 || !c.take_any({"分", "분"})) return false;
  const std::size_t before = c.at;
  c.spaces();
  if (c.number(2, seconds) > 0 && seconds <= 60) {
    read_fraction(c, out);
    if (c.take_any({"秒", "초"})) {
      out.has_seconds = true;
      return true;
    }
  }
  c.at = before;
  seconds = 0;
  out.nano = 0;
  return true;
}

/// "23h50m00s" or, as in French, "23h50": the part after the h.
bool read_minutes_behind_h(Cursor& c, Civil& out, int& minutes, int& seconds) {
  if (c.number(2, minutes) != 2 || minutes > 59) return false;
  if (!c.take('m')) return !is_ascii_letter(c.peek());
  if (c.number(2, seconds) == 0) return !is_ascii_letter(c.peek());
  if (seconds > 60) return false;
  read_fraction(c, out);
  out.has_seconds = true;
  return c.take('s') && !is_ascii_letter(c.peek());
}

/// Markers such as "午後", which precede the hour.
enum class HalfDay : std::uint8_t { none, morning, afternoon };

HalfDay read_half_day(Cursor& c) {
  const HalfDay half = c.take_any({"上午", "午前", "오전"})   ? HalfDay::morning
                       : c.take_any({"下午", "午後", "오후"}) ? HalfDay::afternoon
                                                              : HalfDay::none;
  if (half != HalfDay::none) c.spaces();
  return half;
}

/// HH:MM[:SS[.fraction]] [AM|PM] [zone]; hours above 23 only if `elapsed` (no date).
bool read_time(Cursor& c, Civil& out, bool elapsed) {
  int h = 0;
  int m = 0;
  int s = 0;
  const HalfDay before_hour = read_half_day(c);
  if (c.number(elapsed ? 5 : 2, h) == 0) return false;
  if (c.take_any({"时", "時", "点", "點", "시"})) {
    if (!read_named_minutes(c, out, m, s)) return false;
  } else if (!elapsed && c.take('h')) {
    if (!read_minutes_behind_h(c, out, m, s)) return false;
  } else if (!c.take(':')) {
    return false;
  } else {
    // "21:0:43.720" from HWiNFO: the fraction identifies it as a time.
    const bool is_padded = c.number(2, m) == 2;
    if (m > 59 || (!is_padded && (c.peek() != ':' || !is_digit(c.peek(1))))) return false;
    if (c.peek() == ':' && is_digit(c.peek(1))) {
      ++c.at;
      const bool are_padded = c.number(2, s) == 2 && is_padded;
      if (s > 60 || (!are_padded && !(c.peek() == '.' && is_digit(c.peek(1)) && is_digit(c.peek(2))))) return false;
      out.has_seconds = true;
      read_fraction(c, out);
    }
  }
  if (before_hour != HalfDay::none && h <= 12) h = h % 12 + (before_hour == HalfDay::afternoon ? 12 : 0);
  const std::size_t before = c.at;
  c.spaces();
  const std::string_view half = c.letters();
  if (logtext::same_letters(half, "am") || logtext::same_letters(half, "pm")) {
    if (h < 1 || h > 12) return false;
    h = h % 12 + (logtext::same_letters(half, "pm") ? 12 : 0);
  } else {
    c.at = before;
  }
  if (!elapsed && h > 23) return false;
  out.has_time = true;
  out.local_s += std::int64_t{h} * 3600 + m * 60 + s;
  return true;
}

/// "214007", "21-40-07" or "21.40.07" after a date, as in the names of files: "20260304-214007", "20260304T214007Z".
bool read_joined_time(Cursor& c, Civil& out) {
  int h = 0;
  int m = 0;
  int s = 0;
  if (c.number(2, h) != 2) return false;
  const char separator = c.peek() == '-' || c.peek() == '.' ? c.peek() : '\0';
  if (separator != '\0') ++c.at;
  if (c.number(2, m) != 2 || (separator != '\0' && !c.take(separator)) || c.number(2, s) != 2) return false;
  const bool is_utc = c.peek() == 'Z' && !is_ascii_letter(c.peek(1));
  if (is_digit(c.peek()) || (is_ascii_letter(c.peek()) && !is_utc) || h > 23 || m > 59 || s > 60) return false;
  read_fraction(c, out);
  out.has_time = out.has_seconds = true;
  out.local_s += std::int64_t{h} * 3600 + m * 60 + s;
  return true;
}

/// Whether a unit of memory follows.
bool begins_unit(Cursor c) {
  c.spaces();
  return logtext::unit_bytes(c.letters()) != 0;
}

/// "Sun May 4 04:27:32 [AM] [EDT] 2025", "Sun 4 May 2025 04:27:32 ...": the parts may come in any order.
bool read_named_month(Cursor& c, Civil& out) {
  int month = 0;
  int day = 0;
  int year = 0;
  Civil time;
  for (int word = 0; word < 8 && (month == 0 || day == 0 || year == 0 || !time.has_time); ++word) {
    c.spaces();
    if (is_ascii_letter(c.peek())) {
      const std::string_view letters = c.letters();
      // Weekdays come before the month and never look like one.
      if (month == 0) month = month_named(letters);
      if (letters == "UTC" || letters == "GMT") time.offset_s = 0;
      c.take(',');
      c.take('.');
    } else if (is_digit(c.peek())) {
      const bool is_time = c.peek(1) == ':' || c.peek(2) == ':';
      if (is_time) {
        if (time.has_time || !read_time(c, time, false)) return false;
        continue;
      }
      int value = 0;
      const int digits = c.number(4, value);
      // "Dec 28 10:07:26 20124 MiB"
      if (digits == 4 && (is_digit(c.peek()) || (time.has_time && begins_unit(c)))) return false;
      if (digits == 4 && year == 0) {
        year = value;
      } else if (digits <= 2 && day == 0) {
        day = value;
      } else {
        return false;
      }
      c.take(',');
      if (c.peek(1) == ' ') c.take('.');  // "20. Nov"
    } else {
      break;
    }
  }
  const auto date = day_seconds(year, month, day);
  if (!date || !time.has_time) return false;
  out = time;
  out.local_s += *date;
  out.has_date = true;
  return true;
}

/// "2024年5月1日", "2024년 05월 01일" after its year; nullopt if there is none.
std::optional<std::int64_t> read_date_with_words(Cursor& c, int year) {
  int month = 0;
  int day = 0;
  if (!c.take_any({"年", "년"})) return std::nullopt;
  c.spaces();
  if (c.number(2, month) == 0 || !c.take_any({"月", "월"})) return std::nullopt;
  c.spaces();
  if (c.number(2, day) == 0 || !c.take_any({"日", "号", "일"})) return std::nullopt;
  return day_seconds(year, month, day);
}

/// "01/Mar/2026" in an access log, "1-Mar-2026", "1 Mar 2026", "2026-Mar-01" after its first number; nullopt if there
/// is none.
std::optional<std::int64_t> read_date_with_month_name(Cursor& c, int first, int digits) {
  const char separator = c.peek();
  if (separator != '/' && separator != '-' && separator != ' ') return std::nullopt;
  ++c.at;
  if (!is_ascii_letter(c.peek())) return std::nullopt;
  const int month = month_named(c.letters());
  int last = 0;
  if (month == 0 || !c.take(separator)) return std::nullopt;
  const int last_digits = c.number(4, last);
  if (digits == 4 && last_digits > 0 && last_digits <= 2) return day_seconds(first, month, last);
  if (digits <= 2 && last_digits == 4) return day_seconds(last, month, first);
  return std::nullopt;
}

/// A date that begins with a number at the cursor; nullopt if there is none.
std::optional<std::int64_t> read_numeric_date(Cursor& c, DateOrder order) {
  const std::size_t start = c.at;
  int a = 0;
  int b = 0;
  int y = 0;
  const int first = c.number(8, a);
  if (first == 8) return day_seconds(a / 10'000, a / 100 % 100, a % 100);
  if (first == 4)
    if (const auto date = read_date_with_words(c, a)) return date;
  c.at = start + static_cast<std::size_t>(first);
  if (first == 4 || first == 1 || first == 2)
    if (const auto date = read_date_with_month_name(c, a, first)) return date;
  c.at = start + static_cast<std::size_t>(first);
  const char separator = c.peek();
  const bool separated = separator == '-' || separator == '/' || separator == '.';
  if (separated && (first == 4 || first == 1 || first == 2)) {
    ++c.at;
    if (c.number(2, b) > 0 && c.take(separator)) {
      const int last = c.number(4, y);
      if (first == 4 && (last == 1 || last == 2)) return day_seconds(a, b, y);
      if (first <= 2 && (last == 4 || last == 2)) {
        const int year = last == 2 ? 2000 + y : y;
        return order == DateOrder::month_first ? day_seconds(year, a, b) : day_seconds(year, b, a);
      }
    }
  }
  c.at = start;
  return std::nullopt;
}

bool begins_time(const Cursor& c) {
  return is_digit(c.peek()) || begins_half_day(c.text.substr(c.at));
}

}  // namespace

bool may_begin_civil(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  if (n == 0 || n >= 8) return true;
  if (n == text.size()) return false;
  const char next = text[n];
  if (next == ':' || static_cast<unsigned char>(next) >= 0x80) return true;
  if (n == 3 || n > 4 || n + 1 == text.size()) return false;
  const std::string_view rest = text.substr(n + 1);
  if (next == ' ' && (rest.front() == ' ' || static_cast<unsigned char>(rest.front()) >= 0x80)) return true;
  if (next != ' ' && next != '-' && next != '/' && next != '.') return false;
  if (is_ascii_letter(rest.front())) return next != '.' && month_named(rest.substr(0, 3)) != 0;
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  return next != ' ' && (digits == 1 || digits == 2) && rest.substr(digits).starts_with(next);
}

bool begins_half_day(std::string_view text) {
  if (text.empty() || static_cast<unsigned char>(text.front()) < 0xe0) return false;  // runs for every character
  Cursor c{text};
  return read_half_day(c) != HalfDay::none && is_digit(c.peek());
}

bool read_civil(std::string_view text, DateOrder order, Civil& out) {
  out = Civil{};
  Cursor c{text};
  c.spaces();
  if (is_ascii_letter(c.peek())) {
    if (!read_named_month(c, out)) return false;
    read_offset(c, out);
    out.length = c.at;
    return true;
  }
  if (!begins_time(c) || !may_begin_civil(text.substr(c.at))) return false;
  if (const auto date = read_numeric_date(c, order)) {
    out.local_s = *date;
    out.has_date = true;
    out.length = c.at;
    const std::size_t before = c.at;
    const char separator = c.peek();
    if (separator == 'T' || separator == 't' || separator == ' ' || separator == '_' || separator == '-' ||
        separator == ',' || separator == ':') {
      ++c.at;
      c.spaces();
    }
    const bool apart = c.at != before || !is_digit(text[before - 1]);  // "2024年5月1日23時"
    const std::size_t time_at = c.at;
    bool is_read = apart && begins_time(c) && read_time(c, out, false);
    if (!is_read && apart && separator != ' ' && separator != ':') {
      c.at = time_at;
      out.local_s = *date;
      out.nano = 0;
      is_read = read_joined_time(c, out);
    }
    if (!is_read) {
      out.local_s = *date;
      out.nano = 0;
      out.has_seconds = false;
      return true;
    }
    read_offset(c, out);
  } else if (!read_time(c, out, true)) {
    return false;
  }
  out.length = c.at;
  return true;
}

bool read_civil(std::string_view text, Civil& out) {
  return read_civil(text, DateOrder::month_first, out) || read_civil(text, DateOrder::day_first, out);
}

std::optional<Civil> whole_civil(std::string_view text) {
  text = logtext::trim(text);
  Civil out;
  for (const DateOrder order : {DateOrder::month_first, DateOrder::day_first})
    if (read_civil(text, order, out) && logtext::trim(text.substr(out.length)).empty()) return out;
  return std::nullopt;
}

}  // namespace vramtrack
