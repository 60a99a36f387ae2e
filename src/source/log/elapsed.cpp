#include "source/log/elapsed.hpp"

#include <algorithm>
#include <array>

#include "source/log/labels.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_digit;

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

/// The length of the decimal number with which `text` begins; sets `value`. 0: it does not.
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

/// The unit of time with which `text` begins, as a word of its own or between digits ("1h02m"); nullptr: none.
const TimeUnit* leading_unit(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_letter(text[end])) ++end;
  const auto it = std::find_if(kUnits.begin(), kUnits.end(), [&](const TimeUnit& unit) {
    return logtext::same_letters(unit.word, text.substr(0, end));
  });
  if (it == kUnits.end() || text.substr(end).starts_with("/")) return nullptr;
  if (text.front() == 'M') return nullptr;  // "5M" are bytes
  return &*it;
}

/// The duration with which `text` begins: amounts of units of time, each smaller than the one before.
Elapsed leading_duration(std::string_view text) {
  Elapsed out;
  double smallest = 1e9;
  std::size_t at = 0;
  std::size_t digits = 0;  // of the last number
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

/// The time since the start in "[01:02:30<2:20:00, 30.00s/it]" of tqdm, which has no hours at first.
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

}  // namespace vramtrack
