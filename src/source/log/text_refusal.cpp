#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/option.hpp"
#include "source/log/labels.hpp"
#include "source/log/line_numbers.hpp"
#include "source/log/line_pattern.hpp"
#include "source/log/text.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

constexpr std::size_t kMostLines = 4000;
constexpr std::size_t kEnough = 3;        ///< lines of one kind
constexpr std::size_t kMostAmounts = 4;   ///< amounts per line to name, and to try a pattern for
constexpr std::size_t kLongestWord = 64;  ///< in a pattern

struct Amount {
  std::string_view text;    ///< "4000 MiB"
  std::string_view before;  ///< the text before it, back to the previous amount
};

/// The numbers of a line that have a unit of memory.
std::vector<Amount> amounts_of(std::string_view line) {
  CutLine cut;
  cut.line = line;
  cut_numbers(cut, Grouping::by_comma);
  std::vector<Amount> found;
  std::size_t from = 0;
  for (const LineNumber& number : cut.numbers) {
    if (number.unit_bytes == 0 || number.rate) continue;
    found.push_back({line.substr(number.begin, number.end - number.begin), line.substr(from, number.begin - from)});
    from = number.end;
  }
  return found;
}

/// vLLM's "GPU KV cache usage: 12.3%", SGLang's "token usage: 0.12".
bool is_of_cache(std::string_view line) {
  const std::string lower = logtext::lower(line);
  return lower.find("kv cache usage") != std::string::npos || lower.find("token usage:") != std::string::npos;
}

bool is_digits_and_points(std::string_view text) {
  return !text.empty() && logtext::is_digit(text.front()) &&
         text.find_first_not_of("0123456789.,") == std::string_view::npos;
}

/// A word of a line that names the host's memory with its unit, beside a number: "ram_used_mib=4000"; empty: none.
std::string_view host_key(std::string_view line) {
  constexpr std::string_view kAround = " \t,;=:|{}\"'";
  while (!line.empty()) {
    line.remove_prefix(std::min(line.find_first_not_of(kAround), line.size()));
    const std::string_view word = line.substr(0, std::min(line.find_first_of(kAround), line.size()));
    line.remove_prefix(word.size());
    if (read_label(word).unit_bytes != 0 && names_host_memory(word)) return word;
  }
  return {};
}

/// The last word of `label`, for an example of a pattern.
std::string_view last_word(std::string_view label) {
  label = trim(label);
  while (!label.empty() && std::string_view(":=([").find(label.back()) != std::string_view::npos)
    label = trim(label.substr(0, label.size() - 1));
  const std::size_t from = label.find_last_of(" \t,;|([");
  return from == std::string_view::npos ? label : label.substr(from + 1);
}

/// The first word of `label`.
std::string_view first_word(std::string_view label) {
  const std::size_t from = std::min(label.find_first_not_of(" \t,;|()[]/:="), label.size());
  label.remove_prefix(from);
  return label.substr(0, std::min(label.find_first_of(" \t,;|()[]/:="), label.size()));
}

/// Patterns that read the amount from `begin` to `end` of `line`: by the word before it, the word after it, or its
/// position in the line. They do not match numbers of other lines.
std::vector<std::string> example_patterns(std::string_view line, std::size_t begin, std::size_t end) {
  if (line.size() > LinePattern::kLongestLine) return {};  // no pattern can match it
  const std::string_view amount = line.substr(begin, end - begin);
  const std::size_t digits = std::min(amount.find_first_not_of("0123456789.,"), amount.size());
  const std::string_view unit = trim(amount.substr(digits));
  const std::string value =
      unit.empty() ? std::string("(?<used>[0-9.,]+)") : fmt::format("(?<used>[0-9.,]+ *{})", quoted_for_pattern(unit));
  const auto has_digit = [](std::string_view word) { return std::any_of(word.begin(), word.end(), logtext::is_digit); };
  const std::size_t last_digit = line.substr(0, begin).find_last_of("0123456789");
  const std::size_t from = last_digit == std::string_view::npos ? 0 : last_digit + 1;
  std::vector<std::string> candidates;
  if (const std::string_view word = last_word(line.substr(from, begin - from));
      !word.empty() && word.size() <= kLongestWord)
    candidates.push_back(quoted_for_pattern(word) + "[^0-9]*" + value);
  if (const std::string_view word = first_word(line.substr(end));
      !word.empty() && word.size() <= kLongestWord && !has_digit(word))
    candidates.push_back(value + "[^0-9]*" + quoted_for_pattern(word));
  if (trim(line.substr(0, begin)).find_first_not_of("0123456789") == std::string_view::npos)
    candidates.push_back(trim(line.substr(0, begin)).empty() ? "^ *" + value : "^ *[0-9]+ +" + value);
  std::erase_if(candidates, [&](const std::string& pattern) {
    auto compiled = LinePattern::compile(pattern);
    TextReading read;
    return !compiled || !compiled->read(line, read) || read.used.data() != amount.data();
  });
  return candidates;
}

/// How many lines of `head` with an amount a pattern reads.
std::size_t count_lines_read(std::string_view head, const std::string& pattern) {
  auto compiled = LinePattern::compile(pattern);
  if (!compiled) return 0;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < kMostLines && !head.empty(); ++i) {
    const std::string_view line = logtext::take_line(head);
    TextReading read;
    if (!amounts_of(line).empty() && compiled->read(line, read) && !read.used.empty()) ++lines;
  }
  return lines;
}

/// ", for example ..." with the pattern that matches the most lines of `head`, of those that read one of `amounts`.
std::string for_example(std::string_view head, std::string_view line, const std::vector<Amount>& amounts) {
  std::string best;
  std::size_t most = 0;
  std::size_t with_amounts = 0;
  std::string_view rest = head;
  for (std::size_t i = 0; i < kMostLines && !rest.empty(); ++i)
    if (!amounts_of(logtext::take_line(rest)).empty()) ++with_amounts;
  for (const Amount& a : std::span(amounts).first(std::min(amounts.size(), kMostAmounts))) {
    const auto begin = static_cast<std::size_t>(a.text.data() - line.data());
    for (std::string& pattern : example_patterns(line, begin, begin + a.text.size()))
      if (const std::size_t lines = count_lines_read(head, pattern); lines > most) {
        most = lines;
        best = std::move(pattern);
      }
  }
  if (best.empty()) return {};
  return fmt::format(", for example '{}', which reads {} of the {} lines with an amount", best, most, with_amounts);
}

}  // namespace

std::string example_pattern(std::string_view line, std::size_t begin, std::size_t end) {
  std::vector<std::string> patterns = example_patterns(line, begin, end);
  return patterns.empty() ? std::string() : std::move(patterns.front());
}

std::string why_no_text(std::string_view head) {
  const std::string_view all_of_it = head;
  std::size_t of_host = 0;
  std::size_t undescribed = 0;
  std::size_t numbers = 0;
  std::size_t lines = 0;
  std::size_t of_cache = 0;
  std::string host, host_title, undescribed_text, number_text, cache_text;
  for (std::uint64_t number = 1; number <= kMostLines && !head.empty(); ++number) {
    const std::string_view line = trim(logtext::take_line(head));
    if (line.empty()) continue;
    ++lines;
    if (is_digits_and_points(line) && ++numbers == 1)
      number_text = fmt::format(
          "line {} is '{}', and the other lines are only numbers, too: nothing says when they were read, or in which "
          "unit; "
          "for "
          "readings of 'nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -l 1' that is {} "
          "'^(?<used>[0-9]+)$' {} MiB {} 1; better record the time and the unit, too: "
          "'nvidia-smi --query-gpu=timestamp,memory.used,memory.total --format=csv -l 1'",
          number, excerpt(line), name_of(Option::line_pattern), name_of(Option::unit), name_of(Option::interval));
    if (is_of_cache(line) && ++of_cache == 1)
      cache_text = fmt::format(
          "line {} gives how full the KV cache is: '{}'; the server takes that memory when it starts, so that this "
          "says "
          "nothing about its use of the GPU; record the GPU's, for example with 'vramtrack watch' or 'nvidia-smi "
          "--query-gpu=timestamp,memory.used,memory.total --format=csv -l 1'",
          number, excerpt(line, 120));
    const std::vector<Amount> amounts = amounts_of(line);
    if (const std::string_view key = amounts.empty() ? host_key(line) : ""; !key.empty() && ++of_host == 1)
      host = only_host_memory(key);
    if (host_title.empty() && line.find('|') != std::string_view::npos) host_title = host_key(line);
    if (amounts.empty()) continue;
    const auto is_hosts = [](const Amount& a) { return read_label(a.before).host; };
    if (std::all_of(amounts.begin(), amounts.end(), is_hosts)) {
      if (++of_host == 1)
        host = fmt::format("line {}: {}{}", number, only_host_memory(line), for_example(all_of_it, line, amounts));
      continue;
    }
    if (++undescribed != 1) continue;
    std::string all;
    const std::size_t named = std::min(amounts.size(), kMostAmounts);
    for (const Amount& a : std::span(amounts).first(named))
      all += fmt::format("{}'{}'", all.empty() ? "" : ", ", a.text);
    if (named < amounts.size()) all += fmt::format(" and {} more", amounts.size() - named);
    undescribed_text = fmt::format(
        "line {} has {}, and no word such as 'used', 'allocated', 'memory' or 'VRAM' says which is memory in use of a "
        "GPU: "
        "'{}'; name it with {}{}",
        number, all, excerpt(line), name_of(Option::line_pattern), for_example(all_of_it, line, amounts));
  }
  if (of_cache >= kEnough && undescribed < of_cache) return cache_text;
  if (undescribed >= kEnough) return undescribed_text;
  if (of_host >= kEnough) return host;
  if (!host_title.empty()) return only_host_memory(host_title);
  return numbers >= kEnough && numbers * 10 >= lines * 9 ? number_text : std::string();
}

}  // namespace vramtrack
