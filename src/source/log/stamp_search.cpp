#include "source/log/stamp_search.hpp"

#include <algorithm>
#include <array>
#include <bitset>

#include "source/log/stamp.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_alpha;
using logtext::is_digit;

/// A stamp is near the start of a line; only this much of a longer line is searched.
constexpr std::size_t kSearched = 512;

constexpr std::array<std::string_view, 19> kDateWords = {
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",  "sunday",  "january",  "february", "march",
    "april",  "may",     "june",      "july",     "august", "september", "october", "november", "december"};

std::size_t pair_of(std::string_view word) {
  return static_cast<std::size_t>(static_cast<unsigned char>(logtext::lower(word[0]))) << 8U |
         static_cast<unsigned char>(logtext::lower(word[1]));
}

/// Whether a date may begin with this word: read_civil() skips words before the month.
bool begins_date(std::string_view word) {
  // Asked of every word of every line of text.
  static const auto kFirstLetters = [] {
    std::bitset<65536> pairs;
    for (const std::string_view name : kDateWords) pairs.set(pair_of(name));
    return pairs;
  }();
  if (word.size() < 3 || !kFirstLetters.test(pair_of(word))) return false;
  return std::any_of(kDateWords.begin(), kDateWords.end(), [&](std::string_view name) {
    return logtext::same_letters(word, name) || logtext::same_letters(word, name.substr(0, 3));
  });
}

/// "1772359200" or "1772359200.25" or milliseconds, alone or before a space, a comma or a bracket.
std::string_view leading_epoch(std::string_view line) {
  while (!line.empty() && (line.front() == '[' || line.front() == '(' || logtext::is_space(line.front())))
    line.remove_prefix(1);
  std::size_t digits = 0;
  while (digits < line.size() && is_digit(line[digits])) ++digits;
  if ((digits != 10 && digits != 13) || line.front() != '1') return {};
  std::size_t end = digits;
  if (end < line.size() && line[end] == '.')
    for (++end; end < line.size() && is_digit(line[end]);) ++end;
  if (end < line.size() && !logtext::is_space(line[end]) && line[end] != ',' && line[end] != ']' && line[end] != ')' &&
      line[end] != ':')
    return {};
  return line.substr(0, end);
}

/// The seconds since 1970, or milliseconds and so on, that a word names as a time: "\"ts\": 1772359200.25",
/// "time=1772359200".
std::string_view named_epoch(std::string_view line) {
  constexpr std::array<std::string_view, 11> kNames = {
      "ts", "time", "timestamp", "t", "epoch", "unixtime", "created", "_time", "now", "date", "__REALTIME_TIMESTAMP"};
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] != '1' || is_digit(line[i - 1])) continue;
    std::size_t end = i;
    while (end < line.size() && is_digit(line[end])) ++end;
    const std::size_t digits = end - i;
    if (digits != 10 && digits != 13 && digits != 16 && digits != 19) continue;
    if (end + 1 < line.size() && line[end] == '.' && is_digit(line[end + 1]))
      for (++end; end < line.size() && is_digit(line[end]);) ++end;
    if (end < line.size() && is_alpha(line[end])) continue;
    const std::string_view before = line.substr(0, i);
    const std::size_t name_end = before.find_last_not_of(" :=\"'");
    if (name_end == std::string_view::npos || before.find_first_of(":=", name_end) == std::string_view::npos) continue;
    std::size_t name_begin = name_end + 1;
    while (name_begin > 0 && (is_alpha(before[name_begin - 1]) || before[name_begin - 1] == '_')) --name_begin;
    const std::string_view name = before.substr(name_begin, name_end + 1 - name_begin);
    if (std::any_of(kNames.begin(), kNames.end(), [&](std::string_view n) { return logtext::same_letters(n, name); }))
      return line.substr(i, end - i);
  }
  return {};
}

/// A short word behind a time may be a zone, which read_civil() skips unless it is UTC. In text it may as well be a
/// word of the sentence: "10:00:00 GPU 1: used 5 GB".
std::string_view without_word(std::string_view stamp) {
  std::size_t letters = 0;
  while (letters < stamp.size() && is_alpha(stamp[stamp.size() - 1 - letters])) ++letters;
  const std::string_view word = stamp.substr(stamp.size() - letters);
  for (const std::string_view known : {"z", "utc", "gmt", "am", "pm"})
    if (logtext::same_letters(word, known)) return stamp;
  return logtext::trim(stamp.substr(0, stamp.size() - letters));
}

/// Whether a time of day behind `text` is a duration: "eta: 0:33:10", "took 00:00:17".
bool announces_duration(std::string_view text) {
  constexpr std::array<std::string_view, 12> kWords = {"eta",      "took",       "remaining",     "left",
                                                       "duration", "total time", "training time", "epoch time",
                                                       "restzeit", "dauer",      "剩余",          "耗时"};
  const std::size_t end = text.find_last_not_of(" :=[(");
  if (end == std::string_view::npos) return false;
  text = text.substr(0, end + 1);
  for (const std::string_view word : kWords)
    if (text.size() >= word.size() && logtext::same_letters(text.substr(text.size() - word.size()), word) &&
        (text.size() == word.size() || !is_alpha(text[text.size() - word.size() - 1])))
      return true;
  return false;
}

/// Whether what follows `text` is an aside of a sentence: "Python 3.12.11 (main, Aug 18 2025, 19:17:54)".
bool is_aside(std::string_view text) {
  const std::size_t open = text.find_last_of("()");
  if (open == std::string_view::npos || text[open] == ')' || !logtext::trim(text).ends_with(',')) return false;
  return std::any_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(open), is_alpha) &&
         std::any_of(text.begin() + static_cast<std::ptrdiff_t>(open), text.end(), is_alpha) &&
         std::none_of(text.begin() + static_cast<std::ptrdiff_t>(open), text.end(), is_digit);
}

}  // namespace

std::string_view find_stamp(std::string_view line, bool* by_value) {
  line = line.substr(0, kSearched);
  std::string_view time_of_day;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool starts = i == 0 || (!is_digit(line[i - 1]) && !is_alpha(line[i - 1]) && line[i - 1] != '.');
    if (!starts) continue;
    const std::string_view rest = line.substr(i);
    if (is_alpha(rest.front())) {
      std::size_t letters = 0;
      while (letters < rest.size() && is_alpha(rest[letters])) ++letters;
      if (!begins_date(rest.substr(0, letters))) continue;
    } else if (!is_digit(rest.front()) && !begins_half_day(rest)) {
      continue;
    }
    if (is_digit(rest.front()) && !may_begin_civil(rest)) continue;
    if (by_value != nullptr) *by_value = true;
    Civil civil;
    if (!read_civil(rest, DateOrder::month_first, civil) || !civil.has_time)
      if (!read_civil(rest, DateOrder::day_first, civil)) continue;
    // "[00:30<2:20:00, 30.00s/it]" of tqdm: the time since the start and what remains.
    const bool is_of_tqdm = (i > 0 && line[i - 1] == '<') || rest.substr(civil.length).starts_with('<');
    if (is_of_tqdm && !civil.has_date) continue;
    const std::string_view found = without_word(logtext::trim(rest.substr(0, civil.length)));
    if (civil.has_date && civil.has_time && is_aside(line.substr(0, i))) {
      i += civil.length - 1;
      continue;
    }
    if (civil.has_date && civil.has_time) return found;
    if (civil.has_time && !civil.has_date && time_of_day.empty() && civil.has_seconds &&
        !announces_duration(line.substr(0, i)))
      time_of_day = found;
  }
  if (!time_of_day.empty()) return time_of_day;
  const std::string_view leading = leading_epoch(line);
  return leading.empty() ? named_epoch(line) : leading;
}

}  // namespace vramtrack
