#include "source/log/line_start.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <vector>

#include "source/log/labels.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;

}  // namespace

namespace {

/// A timestamp is near the start of a line, so only this much of a longer line is searched.
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
  // Called for every word in every line of text.
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

/// The epoch time in seconds, milliseconds and so on that a word introduces: "\"ts\": 1772359200.25",
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
    if (end < line.size() && is_ascii_letter(line[end])) continue;
    const std::string_view before = line.substr(0, i);
    const std::size_t name_end = before.find_last_not_of(" :=\"'");
    if (name_end == std::string_view::npos || before.find_first_of(":=", name_end) == std::string_view::npos) continue;
    std::size_t name_begin = name_end + 1;
    while (name_begin > 0 && (is_ascii_letter(before[name_begin - 1]) || before[name_begin - 1] == '_')) --name_begin;
    const std::string_view name = before.substr(name_begin, name_end + 1 - name_begin);
    if (std::any_of(kNames.begin(), kNames.end(), [&](std::string_view n) { return logtext::same_letters(n, name); }))
      return line.substr(i, end - i);
  }
  return {};
}

/// A short word after a time may be a zone, which read_civil() skips unless it is UTC. In prose it may just as well be
/// a word of the sentence: "10:00:00 GPU 1: used 5 GB".
std::string_view without_word(std::string_view stamp) {
  std::size_t letters = 0;
  while (letters < stamp.size() && is_ascii_letter(stamp[stamp.size() - 1 - letters])) ++letters;
  const std::string_view word = stamp.substr(stamp.size() - letters);
  for (const std::string_view known : {"z", "utc", "gmt", "am", "pm"})
    if (logtext::same_letters(word, known)) return stamp;
  return logtext::trim(stamp.substr(0, stamp.size() - letters));
}

/// Whether `text` indicates that the time of day after it is a duration: "eta: 0:33:10", "took 00:00:17".
bool announces_duration(std::string_view text) {
  constexpr std::array<std::string_view, 12> kWords = {"eta",      "took",       "remaining",     "left",
                                                       "duration", "total time", "training time", "epoch time",
                                                       "restzeit", "dauer",      "剩余",          "耗时"};
  const std::size_t end = text.find_last_not_of(" :=[(");
  if (end == std::string_view::npos) return false;
  text = text.substr(0, end + 1);
  for (const std::string_view word : kWords)
    if (text.size() >= word.size() && logtext::same_letters(text.substr(text.size() - word.size()), word) &&
        (text.size() == word.size() || !is_ascii_letter(text[text.size() - word.size() - 1])))
      return true;
  return false;
}

/// Whether `text` starts an aside: "Python 3.12.11 (main, Aug 18 2025, 19:17:54)".
bool is_aside(std::string_view text) {
  const std::size_t open = text.find_last_of("()");
  if (open == std::string_view::npos || text[open] == ')' || !logtext::trim(text).ends_with(',')) return false;
  return std::any_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(open), is_ascii_letter) &&
         std::any_of(text.begin() + static_cast<std::ptrdiff_t>(open), text.end(), is_ascii_letter) &&
         std::none_of(text.begin() + static_cast<std::ptrdiff_t>(open), text.end(), is_digit);
}

}  // namespace

std::string_view find_stamp(std::string_view line, bool* by_value) {
  line = line.substr(0, kSearched);
  std::string_view time_of_day;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool starts = i == 0 || (!is_digit(line[i - 1]) && !is_ascii_letter(line[i - 1]) && line[i - 1] != '.');
    if (!starts) continue;
    const std::string_view rest = line.substr(i);
    if (is_ascii_letter(rest.front())) {
      std::size_t letters = 0;
      while (letters < rest.size() && is_ascii_letter(rest[letters])) ++letters;
      if (!begins_date(rest.substr(0, letters))) continue;
    } else if (!is_digit(rest.front()) && !begins_half_day(rest)) {
      continue;
    }
    if (is_digit(rest.front()) && !may_begin_civil(rest)) continue;
    if (by_value != nullptr) *by_value = true;
    Civil civil;
    if (!read_civil(rest, civil)) continue;
    // tqdm's "[00:30<2:20:00, 30.00s/it]" has the elapsed and the remaining time.
    const bool is_of_tqdm = (i > 0 && line[i - 1] == '<') || rest.substr(civil.length).starts_with('<');
    if (is_of_tqdm && !civil.has_date) continue;
    const std::string_view found = without_word(logtext::trim(rest.substr(0, civil.length)));
    if (civil.has_date && civil.has_time && is_aside(line.substr(0, i))) {
      i += civil.length - 1;
      continue;
    }
    if (civil.has_date && civil.has_time) return found;
    // "0000:17:00.0" is an address.
    const bool has_hour = rest.find_first_not_of("0123456789") <= 2;
    if (civil.has_time && !civil.has_date && time_of_day.empty() && civil.has_seconds && has_hour &&
        !announces_duration(line.substr(0, i)))
      time_of_day = found;
  }
  if (!time_of_day.empty()) return time_of_day;
  const std::string_view leading = leading_epoch(line);
  return leading.empty() ? named_epoch(line) : leading;
}

namespace {

struct TimeUnit {
  std::string_view word;
  double seconds;
};

constexpr std::array<TimeUnit, 31> kUnits = {{
    {"d", 86400}, {"day", 86400}, {"days", 86400},    {"tage", 86400}, {"天", 86400},   {"日", 86400},  {"h", 3600},
    {"hr", 3600}, {"hrs", 3600},  {"hour", 3600},     {"hours", 3600}, {"std", 3600},   {"小时", 3600}, {"時間", 3600},
    {"m", 60},    {"min", 60},    {"mins", 60},       {"minute", 60},  {"minutes", 60}, {"分钟", 60},   {"分", 60},
    {"s", 1},     {"sec", 1},     {"secs", 1},        {"second", 1},   {"seconds", 1},  {"sek", 1},     {"秒", 1},
    {"ms", 1e-3}, {"msec", 1e-3}, {"millisec", 1e-3},
}};

/// The length of the decimal number at the start of `text`, 0 if there is none; sets `value`.
std::size_t leading_decimal(std::string_view text, double& value) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == 0 || end > 12) return 0;
  if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1]))
    for (++end; end < text.size() && is_digit(text[end]);) ++end;
  logtext::Decimal number;
  if (!logtext::read_decimal(text.substr(0, end), number)) return 0;
  value = number.value();
  return end;
}

/// The unit of time at the start of `text`, as a separate word or between digits ("1h02m"); nullptr if there is none.
const TimeUnit* leading_unit(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_letter(text[end])) ++end;
  const auto it = std::find_if(kUnits.begin(), kUnits.end(), [&](const TimeUnit& unit) {
    return logtext::same_letters(unit.word, text.substr(0, end));
  });
  if (it == kUnits.end() || text.substr(end).starts_with("/")) return nullptr;
  if (text.front() == 'M') return nullptr;  // "5M" is bytes
  return &*it;
}

/// The duration at the start of `text`: amounts of units of time, each smaller than the previous one.
Elapsed leading_duration(std::string_view text) {
  Elapsed out;
  double smallest = 1e9;
  std::size_t at = 0;
  std::size_t digits = 0;  // digits in the last number
  while (true) {
    std::size_t from = at;
    while (from < text.size() && text[from] == ' ') ++from;
    double value = 0;
    const std::size_t length = leading_decimal(text.substr(from), value);
    std::size_t word = from + length;
    if (length == 0) break;
    while (word < text.size() && text[word] == ' ') ++word;
    const TimeUnit* unit = leading_unit(text.substr(word));
    if (unit == nullptr || unit->seconds >= smallest) break;
    digits = length;
    out.seconds += value * unit->seconds;
    const bool is_first = at == 0;
    at = word + unit->word.size();
    smallest = unit->seconds;
    out.text = is_first && unit->seconds == 1 ? text.substr(from, digits) : text.substr(0, at);
  }
  return out;
}

/// The elapsed time in tqdm's "[01:02:30<2:20:00, 30.00s/it]", which has no hours at first.
Elapsed tqdm_elapsed(std::string_view line) {
  const std::size_t sign = line.find('<');
  if (sign == std::string_view::npos) return {};
  std::size_t begin = sign;
  while (begin > 0 && (is_digit(line[begin - 1]) || line[begin - 1] == ':')) --begin;
  const std::string_view text = line.substr(begin, sign - begin);
  if (begin == 0 || line[begin - 1] != '[' || text.size() < 4 || text[text.size() - 3] != ':') return {};
  Elapsed out{text, 0};
  double value = 0;
  for (const char c : text) {
    if (c != ':') {
      value = value * 10 + (c - '0');
      continue;
    }
    out.seconds = (out.seconds + value) * 60;
    value = 0;
  }
  out.seconds += value;
  return out;
}

}  // namespace

Elapsed find_elapsed(std::string_view line) {
  if (const Elapsed found = tqdm_elapsed(line); !found.text.empty()) return found;
  const std::size_t bracket = line.find_first_not_of(" \t|:");
  if (bracket == std::string_view::npos) return {};
  const bool in_brackets = line[bracket] == '[' || line[bracket] == '(';
  std::string_view rest = logtext::trim(line.substr(bracket + (in_brackets ? 1 : 0)));
  if (rest.starts_with('+')) rest.remove_prefix(1);
  double value = 0;
  if (const std::size_t length = leading_decimal(rest, value); length > 0) {
    constexpr std::size_t kMicroseconds = 6;
    const std::size_t dot = rest.substr(0, length).find('.');
    const bool is_kernel = in_brackets && rest.substr(length).starts_with(']') && dot != std::string_view::npos &&
                           length - dot - 1 == kMicroseconds;
    return is_kernel ? Elapsed{rest.substr(0, length), value} : leading_duration(rest);
  }
  constexpr std::array<std::string_view, 12> kNames = {"t",        "time", "elapsed",  "uptime", "after", "runtime",
                                                       "walltime", "zeit", "laufzeit", "时间",   "経過",  "耗时"};
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!is_letter(line[i]) || (i > 0 && (is_letter(line[i - 1]) || line[i - 1] == '_'))) continue;
    for (const std::string_view name : kNames) {
      if (logtext::lower(line[i]) != name.front() || !logtext::same_letters(line.substr(i, name.size()), name))
        continue;
      std::string_view text = line.substr(i + name.size());
      const std::size_t signs = std::min(text.find_first_not_of(" :=[+"), text.size());
      if (signs == 0) continue;  // "times"
      if (const Elapsed found = leading_duration(text.substr(signs)); !found.text.empty()) return found;
    }
  }
  return {};
}

namespace {

/// The time parser takes letters after a time as a zone, as in "10:00:15 Free memory: 5 GB".
std::string_view without_memory_word(std::string_view stamp) {
  std::size_t end = stamp.size();
  while (end > 0 && is_letter(stamp[end - 1])) --end;
  return meaning_of(stamp.substr(end)) == Meaning::none ? stamp : logtext::trim(stamp.substr(0, end));
}

/// Whether `name` looks like a host or a pod, as pdsh and clush print it before each line: "node-07", "gpu3".
bool is_host(std::string_view name) {
  if (name.size() > 64 || !is_ascii_letter(name.front())) return false;
  bool has_sign = false;
  for (const char c : name) {
    if (!is_ascii_letter(c) && !is_digit(c) && c != '-' && c != '.' && c != '_') return false;
    has_sign |= is_digit(c) || c == '-';
  }
  std::vector<Word> words;
  cut_words(name, words);
  // "step-3: ", "gpu_mem_mb: " and "train-loss: " belong to the message.
  return has_sign && std::all_of(words.begin(), words.end(), [](const Word& word) {
           return word.meaning == Meaning::none || word.meaning == Meaning::gpu;
         });
}

/// The prefix that docker compose, kubectl logs --prefix or srun --label put before the message.
std::string_view line_prefix(std::string_view line) {
  if (line.starts_with("[pod/")) {
    const std::size_t end = line.find(']');
    return end == std::string_view::npos ? std::string_view{} : line.substr(5, end - 5);
  }
  const std::size_t bar = line.find(" | ");
  if (bar != std::string_view::npos && bar > 0 && bar < 64) {
    const std::string_view name = logtext::trim(line.substr(0, bar));
    if (!name.empty() && is_ascii_letter(name.front()) && name.find_first_of(" :=%") == std::string_view::npos)
      return name;
  }
  const std::string_view rest = logtext::trim(line);
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  if (digits > 0 && digits <= 4 && rest.substr(digits).starts_with(": ")) return rest.substr(0, digits);
  const std::string_view name = rest.substr(0, std::min(rest.find(": "), rest.size()));
  return name.size() < rest.size() && is_host(name) ? name : std::string_view{};
}

/// `line` without its prefix and without the separator between that and the message: "|", "]", ":".
std::string_view message_of(std::string_view line, std::string_view prefix) {
  if (!prefix.empty()) line.remove_prefix(static_cast<std::size_t>(prefix.data() + prefix.size() - line.data()));
  line.remove_prefix(std::min(line.find_first_not_of(" \t|:[](\"'"), line.size()));
  return line;
}

/// `line` after the header of Python's logging ("INFO:trainer:") or syslog ("node7 python[4242]:").
std::string_view behind_header(std::string_view line) {
  for (const std::string_view level : {"DEBUG:", "INFO:", "WARNING:", "ERROR:", "CRITICAL:"}) {
    if (!line.starts_with(level)) continue;
    const std::size_t name_end = line.find_first_of(": ", level.size());
    if (name_end != std::string_view::npos && line[name_end] == ':') return line.substr(name_end + 1);
  }
  const std::size_t pid = line.find('[');
  if (pid == std::string_view::npos ||
      std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(pid), ' ') != 1)
    return line;
  const std::size_t pid_end = line.find_first_not_of("0123456789", pid + 1);
  if (pid_end == std::string_view::npos || pid_end == pid + 1 || !line.substr(pid_end).starts_with("]: ")) return line;
  return line.substr(pid_end + 3);
}

/// "10:05", "9:05 PM" or "9:05pm" at the start of `line`, after its prefix, with or without brackets.
std::string_view leading_minute(std::string_view line, std::string_view prefix, bool& by_value) {
  line = message_of(line, prefix);
  std::size_t digits = 0;
  while (digits < line.size() && is_digit(line[digits])) ++digits;
  if (digits == 0 || digits > 2 || line.substr(digits, 1) != ":") return {};
  by_value = true;
  Civil civil;
  if (!read_civil(line, DateOrder::month_first, civil) || !civil.has_time || civil.has_date) return {};
  std::size_t end = digits + 3;
  if (line.size() < end) return {};
  const auto ends = [&](std::size_t at) {
    return line.size() == at || std::string_view(" \t,;|])\"'").find(line[at]) != std::string_view::npos;
  };
  const std::size_t space = line.substr(end).starts_with(' ') ? 1 : 0;
  const std::string_view half = line.substr(end + space, 2);
  if ((logtext::same_letters(half, "am") || logtext::same_letters(half, "pm")) && ends(end + space + 2))
    end += space + 2;
  if (!ends(end)) return {};
  return line.substr(0, end);
}

}  // namespace

LineStart read_line_start(std::string_view line) {
  LineStart out;
  out.stamp = without_memory_word(find_stamp(line, &out.by_value));
  out.prefix = line_prefix(line);
  // Seconds since 1970 count as a time only at the start of the message; elsewhere they may be any number.
  if (const std::string_view message = behind_header(message_of(line, out.prefix));
      out.stamp.empty() && message.size() < line.size())
    out.stamp = without_memory_word(find_stamp(message, &out.by_value));
  if (out.stamp.empty()) out.minute = leading_minute(line, out.prefix, out.by_value);
  if (!out.stamp.empty() || !out.minute.empty()) return out;
  if (!out.prefix.empty())
    line.remove_prefix(static_cast<std::size_t>(out.prefix.data() + out.prefix.size() - line.data()));
  out.elapsed = find_elapsed(line);
  return out;
}

}  // namespace vramtrack
