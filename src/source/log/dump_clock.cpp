#include "source/log/dump_clock.hpp"

#include <algorithm>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_alpha;
using logtext::is_digit;
using logtext::trim;

constexpr std::size_t kSamples = 400;

/// `text` without the marks around it: "==== 10:00 ====", "[10:00]", "# 10:00".
std::string_view without_marks(std::string_view text) {
  while (!text.empty() && !is_digit(text.front()) && !is_alpha(text.front())) text.remove_prefix(1);
  while (!text.empty() && !is_digit(text.back()) && !is_alpha(text.back())) text.remove_suffix(1);
  return text;
}

bool is_date(std::string_view text) {
  Civil civil;
  for (const DateOrder order : {DateOrder::month_first, DateOrder::day_first})
    if (read_civil(text, order, civil) && civil.has_date && trim(text.substr(civil.length)).empty()) return true;
  return false;
}

/// Whether `text` is seconds or milliseconds since 1970, in the years 2001 to 2099.
bool is_epoch(std::string_view text) {
  logtext::Decimal number;
  if (!logtext::read_decimal(text, number) || number.length != text.size() || number.negative) return false;
  const std::size_t digits = std::min(text.find('.'), text.size());
  return (digits == 10 && number.whole < 4'100'000'000) || (digits == 13 && number.whole < 4'100'000'000'000);
}

}  // namespace

std::string_view dated_text(std::string_view line) {
  constexpr std::size_t kLongest = 120;
  std::string_view text = trim(line);
  // A cell of a table or a member of a JSON object does not date a dump, although it may contain a time.
  constexpr std::string_view kOfOthers = "|+\"{}";
  if (text.empty() || text.size() > kLongest || kOfOthers.find(text.front()) != std::string_view::npos) return {};
  text = without_marks(text);
  if (is_date(text) || is_epoch(text)) return text;
  for (const std::string_view sign : {": ", " at "}) {  // "Date: 2026-03-01 10:00:00", "scraped at 1772359200"
    const std::size_t before = text.find(sign);
    if (before == std::string_view::npos) continue;
    const std::string_view time = without_marks(text.substr(before + sign.size()));
    if (is_date(time) || (sign == " at " && is_epoch(time))) return time;
  }
  return {};
}

Result<DumpClock> DumpClock::detect(const LogHead& head, std::vector<std::string>& assumptions, const Find& find) {
  std::vector<std::string_view> samples;
  std::string_view rest = head.text;
  while (!rest.empty() && samples.size() < kSamples) {
    const std::string_view text = find(logtext::take_line(rest));
    if (!text.empty()) samples.push_back(text);
  }
  DumpClock clock;
  auto stamp = StampReader::detect(samples, {}, *head.options, *head.zone, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  clock.stamp_ = std::move(*stamp);
  return clock;
}

bool DumpClock::take(std::string_view text) {
  Timestamp time;
  if (text.empty() || counts() || !stamp_.read(text, time)) return false;
  time_ = time;
  return true;
}

std::optional<Timestamp> DumpClock::next() {
  if (counts()) return stamp_.at_round(round_++);
  std::optional<Timestamp> time;
  time.swap(time_);
  return time;
}

}  // namespace vramtrack
