#include "explain/place.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "explain/lines.hpp"
#include "explain/listing.hpp"
#include "explain/prose.hpp"
#include "explain/source_text.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// Lines of a block of a document that are looked at.
constexpr std::size_t kExampleLines = 3;

/// "--max-mem N   text", "  -m, --max-mem N", at the beginning of a line. What a person writes of an option has no gap.
bool is_option(std::string_view line) {
  const std::string_view words = trimmed(line, kBlanks);
  if (words.size() < 4 || words[0] != '-') return false;
  if (words.find("  ") == std::string_view::npos && std::count(words.begin(), words.end(), ' ') > 2) return false;
  if (words[1] == '-') return is_ascii_letter(words[2]);
  return is_ascii_letter(words[1]) && (words.substr(2, 2) == ", " || words.substr(2, 2) == "  ");
}
bool is_help(const Lines& lines) {
  if (is_option(lines.all[lines.own])) return true;
  // The rest of a description is further to the right than its option.
  std::size_t indent = indent_of(lines.all[lines.own]);
  bool has_option = false;
  for (std::size_t at = lines.own; at-- > 0;) {
    const std::string_view line = lines.all[at];
    if (lower(trimmed(line, kBlanks)).starts_with("usage:")) return has_option;
    if (has_option) continue;
    if (is_blank(line) || indent_of(line) > indent) return false;
    if (indent_of(line) == indent) continue;
    if (!is_option(line)) return false;
    has_option = true;
    indent = indent_of(line);
  }
  return false;
}

/// Whether only a run writes `line`.
bool is_of_run(std::string_view line) {
  const std::string words = lower(trimmed(line, kBlanks));
  if (words.empty()) return false;
  constexpr std::string_view kBegins =
      "traceback |file \"|at |$ |>>> |ps c:|c:\\|[|(|{|info|warn|error:|error |fatal|debug|critical|e |w |i |==|--|+-|"
      "thread '|terminate called|what():|aborted|killed|level=|time=|ts=";
  if (begins_any(words, kBegins)) return true;
  return has_time_or_place(words);
}

/// The first line of the block around the message; 0: it is in none. `last` is set to its last line.
std::size_t block_begin(const Lines& lines, std::size_t& last) {
  const std::size_t own_indent = indent_of(lines.all[lines.own]);
  // Fenced: the fences before it are paired, if all of them are known; one with a language opens a block.
  std::size_t fences = 0, open = 0;
  for (std::size_t at = 0; at < lines.own; ++at)
    if (is_fence(lines.all[at])) {
      const bool has_language = !trimmed(lines.all[at], " \t\r>`~").empty();
      fences = has_language ? 1 : fences + 1;
      open = at;
    }
  if (fences % 2 == 1)
    for (std::size_t at = lines.last + 1; at < lines.all.size(); ++at)
      if (is_fence(lines.all[at])) {
        last = at - 1;
        return open + 1;
      }
  // Indented, behind a blank line.
  if (own_indent < 2) return 0;
  std::size_t first = lines.own;
  while (first > 0 && !is_blank(lines.all[first - 1]) && indent_of(lines.all[first - 1]) >= 2) --first;
  if (first == 0 || !is_blank(lines.all[first - 1])) return 0;
  last = lines.last;
  while (last + 1 < lines.all.size() && !is_blank(lines.all[last + 1]) && indent_of(lines.all[last + 1]) >= 2) ++last;
  return first;
}

/// Whether a line that introduces others is a sentence: a verb stands behind its subject. "Steps to reproduce:", "Full
/// log:" are labels.
bool is_sentence(std::string_view line) {
  const std::string lowered = lower(line);
  const std::vector<Word> words = words_of(lowered);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i].text;
    if (is_any(word, "may|can|will|might|must|should|could|would|is|are|see|get|print|look|appear")) return true;
    const bool is_verb = word.size() > 2 && word.ends_with('s') && !word.ends_with("ss");
    if (is_verb && (i + 1 < words.size() || is_any(words[i - 1].text, "it|this|that|which"))) return true;
  }
  return false;
}

/// Whether text that belongs to a block follows it: neither the end, nor a heading, nor the label of another block.
bool is_explained(const Lines& lines, std::size_t last) {
  std::size_t at = last + 1;
  while (at < lines.all.size() && (is_blank(lines.all[at]) || is_fence(lines.all[at]))) ++at;
  return at < lines.all.size() && !is_heading(lines, at) && !trimmed(lines.all[at], " \t\r>*").ends_with(':');
}

bool is_example(const Lines& lines, bool is_document) {
  std::size_t last = 0;
  const std::size_t first = block_begin(lines, last);
  if (first == 0) return false;
  std::size_t count = 0;
  for (std::size_t at = first; at <= last; ++at) {
    if (is_of_run(lines.all[at]) || has_fact_of_run(lower(lines.all[at]))) return false;
    if (!is_blank(lines.all[at])) ++count;
  }
  if (count > kExampleLines) return false;
  std::size_t above = first;
  while (above > 0 && (is_blank(lines.all[above - 1]) || is_fence(lines.all[above - 1]))) --above;
  if (above == 0) return false;
  const std::string_view introduction = trimmed(lines.all[above - 1], " \t\r>*");
  if (!introduction.ends_with(':') || is_of_run(introduction) || reports_past(introduction)) return false;
  if (!introduction.ends_with("::") && !addresses_reader(lower(introduction)) &&
      (!is_document || (!is_sentence(introduction) && !is_explained(lines, last))))
    return false;
  return !has_writer(lines);
}

/// Whether the message stands in a sentence about a change of code that the text shows as a diff.
bool is_of_change(const Lines& lines) {
  constexpr std::size_t kLeast = 2;
  if (!is_sentence(lower(lines.all[lines.own]))) return false;
  std::size_t code = 0;
  for (const std::string_view line : lines.all) {
    // "- text" is an item of a list.
    const bool is_item = line.size() > 2 && line[1] == ' ' && line[2] != ' ';
    const bool is_changed = !line.empty() && (line.front() == '+' || line.front() == '-') && !is_item;
    if (is_changed && is_source_line(line.substr(1)))
      ++code;
    else if (!is_changed && indent_of(line) == 0 && names_writer(lower(line)))
      return false;
  }
  return code >= kLeast;
}

/// Whether the message stands in the text of a commit, as `git log` shows it: indented, below "commit 1f3c9e2".
bool is_of_commit(const Lines& lines) {
  constexpr std::size_t kIndent = 4, kLeastDigits = 7;
  if (indent_of(lines.all[lines.own]) < kIndent) return false;
  std::size_t at = lines.own;
  while (at > 0 && (is_blank(lines.all[at]) || indent_of(lines.all[at]) >= kIndent)) --at;
  // "Author:", "Date:"
  while (at > 0 && is_ascii_letter(lines.all[at].empty() ? ' ' : lines.all[at].front()) &&
         lines.all[at].substr(0, lines.all[at].find(' ')).ends_with(':'))
    --at;
  constexpr std::string_view kName = "commit ";
  if (!lines.all[at].starts_with(kName)) return false;
  return std::min(lines.all[at].find_first_not_of("0123456789abcdef", kName.size()), lines.all[at].size()) >=
         kName.size() + kLeastDigits;
}

}  // namespace

Place place_of(std::string_view text, std::size_t begin, std::size_t end, bool is_document) {
  const Lines lines(text, begin, end);
  if (is_in_code(lines)) return Place::code;
  if (is_help(lines)) return Place::help;
  if (is_listed(lines)) return Place::list;
  if (is_of_change(lines) || is_of_commit(lines)) return Place::change;
  if (is_example(lines, is_document)) return Place::example;
  return Place::run;
}

bool begins_with_title(std::string_view text) {
  std::string_view line;
  std::size_t at = 0;
  while (at < text.size() && line.empty()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    line = trimmed(text.substr(at, end - at), kBlanks);
    at = end + 1;
  }
  if (line.starts_with("# ") || lower(line).starts_with("<h1")) return true;
  if (at >= text.size() || line.size() < 3) return false;
  const std::string_view next = trimmed(text.substr(at, std::min(text.find('\n', at), text.size()) - at), kBlanks);
  return next.size() >= 3 && next.find_first_not_of('=') == std::string_view::npos;
}

}  // namespace vramtrack::explain
