#include "explain/lines.hpp"

#include <algorithm>
#include <string>

#include "explain/place.hpp"
#include "explain/prose.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {

Lines::Lines(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t from = begin - std::min(begin, kPlaceBeforeBytes);
  // A line that begins further above is left out, but for the rest of the message's own.
  if (const std::size_t stop = text.find('\n', from); from > 0 && stop < begin) from = stop + 1;
  before = text.substr(from, begin - from);
  before.remove_prefix(before.rfind('\n') + 1);
  const std::size_t until = std::min(text.size(), end + kPlaceAfterBytes);
  while (from < until) {
    const std::size_t stop = std::min(text.find('\n', from), until);
    if (from <= begin) own = all.size();
    if (from <= end) last = all.size();
    std::string_view line = text.substr(from, stop - from);
    if (line.ends_with('\r')) line.remove_suffix(1);
    all.push_back(line);
    from = stop + 1;
  }
  if (all.empty()) all.emplace_back();
}

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}
bool is_blank(std::string_view line) {
  return indent_of(line) == line.size() || trimmed(line, kBlanks).empty();
}
bool is_fence(std::string_view line) {
  const std::string_view words = trimmed(line, " \t>");
  return words.starts_with("```") || words.starts_with("~~~");
}
bool is_name_char(char c) {
  return is_ascii_letter(c) || is_digit(c) || c == '_';
}
bool is_heading(const Lines& lines, std::size_t at) {
  const std::string_view line = lines.all[at];
  if (lower(line.substr(0, 3)).starts_with("<h") && line.size() > 3 && is_digit(line[2])) return true;
  if (line.starts_with('#')) return line.substr(std::min(line.find_first_not_of('#'), line.size())).starts_with(' ');
  return at > 0 && line.size() > 2 && line.find_first_not_of("=-~^") == std::string_view::npos &&
         !is_blank(lines.all[at - 1]);
}
bool has_writer(const Lines& lines) {
  return std::any_of(lines.all.begin(), lines.all.end(),
                     [](std::string_view line) { return names_writer(lower(line)); });
}

bool reports_past(std::string_view line) {
  const std::string lowered = lower(line);
  std::string_view last;
  for (const Word& word : words_of(lowered)) {
    const bool is_past =
        (word.text.size() > 3 && word.text.ends_with("ed")) || is_any(word.text, "was|were|got|ran|hit|went|threw");
    if (is_past && !is_any(last, "a|an|the|any|this|each|is|are|be|isn't|aren't|not")) return true;
    last = word.text;
  }
  return false;
}

bool has_fact_of_run(std::string_view words) {
  for (const std::string_view name : {"exit code", "exit status", "exited with", "exitcode", "status", "pid", "signal"})
    for (std::size_t at = words.find(name); at != std::string_view::npos; at = words.find(name, at + 1)) {
      if (at > 0 && is_name_char(words[at - 1])) continue;
      std::string_view rest = words.substr(at + name.size());
      for (const std::string_view between : {" code", " status", " number"})
        if (rest.starts_with(between)) rest.remove_prefix(between.size());
      rest.remove_prefix(std::min(rest.find_first_not_of(" :=#-"), rest.size()));
      if (!rest.empty() && is_digit(rest.front())) return true;
    }
  for (const std::string_view folder : {"/home/", "/root/", "/users/", "/workspace/", "\\users\\"})
    if (const std::size_t at = words.find(folder); at != std::string_view::npos && (at == 0 || words[at - 1] != '.'))
      return true;
  constexpr std::size_t kLeastDigits = 6;
  for (std::size_t at = words.find("0x"); at != std::string_view::npos; at = words.find("0x", at + 1))
    if (std::min(words.find_first_not_of("0123456789abcdef", at + 2), words.size()) - at - 2 >= kLeastDigits)
      return true;
  return false;
}

bool has_time_or_place(std::string_view words) {
  for (std::size_t i = 2; i + 2 < words.size(); ++i) {
    const bool has_digits = is_digit(words[i - 2]) && is_digit(words[i - 1]) && is_digit(words[i + 1]);
    if (has_digits && is_digit(words[i + 2]) && (words[i] == ':' || words[i] == '-')) return true;
    if (words[i] != ':' || !is_digit(words[i + 1])) continue;
    std::size_t from = i;
    while (from > 0 && is_name_char(words[from - 1])) --from;
    if (from > 0 && from < i && words[from - 1] == '.' && !is_digit(words[i - 1])) return true;
  }
  return false;
}

}  // namespace vramtrack::explain
