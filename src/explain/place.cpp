#include "explain/place.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "explain/prose.hpp"
#include "explain/statement.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::string_view kBlanks = " \t\r";
/// Lines of a block of a document, and of an array of strings, that are looked at.
constexpr std::size_t kExampleLines = 3;
constexpr std::size_t kListLines = 32;

/// The lines of [begin, end), and those around it, without their ends. `own` is the first line of the message.
struct Lines {
  std::vector<std::string_view> all;
  std::size_t own = 0;
  std::size_t last = 0;  ///< the line where the message ends

  Lines(std::string_view text, std::size_t begin, std::size_t end) {
    std::size_t from = begin - std::min(begin, kPlaceBeforeBytes);
    if (from > 0) from = std::min(text.find('\n', from), begin - 1) + 1;
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
};

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
bool is_name(std::string_view word) {
  return !word.empty() && !is_digit(word.front()) && std::all_of(word.begin(), word.end(), is_name_char);
}

/// "TEXT =", "const char* kText =", "msg: str =", "text :=", "x <-": the left side of an assignment that a line begins.
/// In "level=error msg=" of a log no blank stands beside the mark.
bool is_assignment(std::string_view left) {
  const std::string_view before = trimmed(left, kBlanks);
  for (const std::string_view mark : {":=", "<-", "="}) {
    if (!before.ends_with(mark)) continue;
    std::string_view name = before.substr(0, before.size() - mark.size());
    if (name.empty() || name.back() != ' ' || left.back() != ' ') return false;
    name = trimmed(name, kBlanks);
    // Of a declaration, the words before the name are types and qualifiers.
    constexpr std::string_view kDeclares =
        "const|let|var|val|my|local|static|auto|constexpr|inline|final|public|private|export|char|string";
    const std::string_view first = name.substr(0, name.find(' '));
    if (first == name) return first.find_first_of("\"'(){},;") == std::string_view::npos && !is_digit(first.front());
    return is_any(lower(first), kDeclares) || first.find("::") != std::string_view::npos ||
           (first.back() == ':' && is_name(first.substr(0, first.size() - 1)));
  }
  return false;
}

/// "parse(", "assert parse(", "    return f(": a call of a function that a line begins. The value of an error is none:
/// "RuntimeError(", "DriverError(2, ". Neither is a class.
bool is_call(std::string_view left) {
  std::string_view code = trimmed(left, kBlanks);
  for (const std::string_view word : {"return ", "assert ", "await ", "if ", "assert not ", "not ", "self."})
    if (code.starts_with(word)) code.remove_prefix(word.size());
  if (const std::size_t mark = code.find(" = ");
      mark != std::string_view::npos && is_assignment(code.substr(0, mark + 3)))
    code.remove_prefix(mark + 3);
  const std::size_t open = code.find('(');
  if (open == std::string_view::npos || open == 0) return false;
  std::string_view name = code.substr(0, open);
  if (name.starts_with('@')) name.remove_prefix(1);
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:>-") !=
      std::string_view::npos)
    return false;
  const std::size_t part = name.find_last_of(".:>");
  const std::string_view last = name.substr(part == std::string_view::npos ? 0 : part + 1);
  const bool is_macro = std::none_of(last.begin(), last.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return !last.empty() && ((last.front() >= 'a' && last.front() <= 'z') || is_macro) && !lower(last).ends_with("error");
}

/// The opening quotation mark of the string that a line, of which `before` stands before the message, has for its
/// first; npos: none.
std::size_t opening_mark(std::string_view before) {
  return before.find_first_of("\"'`");
}
/// What stands before a string, without the letter of its kind: r"...".
std::string_view left_of(std::string_view before, std::size_t mark) {
  std::string_view left = before.substr(0, mark);
  while (!left.empty() && std::string_view("rbfuRBFU").find(left.back()) != std::string_view::npos &&
         (left.size() == 1 || !is_name_char(left[left.size() - 2])))
    left.remove_suffix(1);
  return left;
}
bool ends_string(std::string_view line, char mark) {
  const std::string_view code = trimmed(line, " \t\r;,)]}+\\");
  return !code.empty() && code.back() == mark;
}

/// A line that is a string, and nothing else: r"...",
bool is_string(std::string_view line) {
  const std::string_view code = trimmed(line, kBlanks);
  const std::size_t mark = opening_mark(code);
  return mark != std::string_view::npos && left_of(code, mark).empty() && code.size() > mark + 1 &&
         ends_string(code, code[mark]);
}

/// The line above the strings at `at` that opens them: "TEXTS = [", "f(". In JSON, a key opens them: "\"lines\": [".
bool is_opened_by_code(const Lines& lines, std::size_t at) {
  for (std::size_t count = 0; at > 0 && count < kListLines; ++count) {
    const std::string_view line = trimmed(lines.all[--at], kBlanks);
    if (line.empty() || is_string(line) || line.starts_with('#') || line.starts_with("//")) continue;
    if (line.back() != '[' && line.back() != '(' && line.back() != '{') return false;
    const std::string_view left = line.substr(0, line.size() - 1);
    return line.size() > 1 && (is_assignment(std::string(left) + ' ') || is_assignment(left) || is_call(line));
  }
  return false;
}

/// Inside """ or ''' that an assignment, a call or a definition opens.
bool is_in_long_string(const Lines& lines, std::string_view before) {
  for (std::size_t at = lines.own + 1; at-- > 0;) {
    const std::string_view line = at == lines.own ? before : lines.all[at];
    const std::size_t mark = std::max(line.rfind("\"\"\"") + 1, line.rfind("'''") + 1);
    if (mark == 0) continue;
    const std::string_view left = left_of(line, mark - 1);
    if (trimmed(left, kBlanks).empty()) {
      // The text of a definition, or the end of a string.
      std::size_t above = at;
      while (above > 0 && is_blank(lines.all[above - 1])) --above;
      return above > 0 && trimmed(lines.all[above - 1], kBlanks).ends_with("):");
    }
    return is_assignment(left) || is_call(left) || trimmed(left, kBlanks) == "return";
  }
  return false;
}

/// A line as only source code has it: a statement, the head of a function or a block, an import, an assignment of more
/// than a number.
bool is_code(std::string_view line) {
  const std::string_view code = trimmed(line, kBlanks);
  if (code.size() < 3 || code.starts_with("//")) return false;
  if (code.back() == ';' || code.ends_with("):") || code.ends_with(") {") || code.ends_with("({")) return true;
  for (const std::string_view word : {"import ", "#include ", "for (", "if (", "while (", "@", "from "})
    if (code.starts_with(word)) return word != "from " || code.find(" import ") != std::string_view::npos;
  const bool is_open = code.back() == '(' || code.back() == ')' || code.back() == '=' || code.back() == ',';
  if (is_open && is_call(code)) return true;
  const std::size_t mark = code.find(" = ");
  if (mark == std::string_view::npos)
    return (code.ends_with(" =") || code.ends_with(" = {")) && is_assignment(std::string(code) + ' ');
  return is_assignment(code.substr(0, mark + 3)) && !is_digit(code[mark + 3]);
}
/// Whether most of the lines beside a string are code: the string of a call over several lines, of a list, of a table.
/// A traceback shows lines of code, too.
bool is_among_code(const Lines& lines) {
  constexpr std::size_t kNear = 8, kLeast = 3;
  std::size_t count = 0, code = 0;
  const std::size_t first = lines.own - std::min(lines.own, kNear);
  for (std::size_t at = first; at < std::min(lines.all.size(), lines.last + 1 + kNear); ++at) {
    if (at >= lines.own && at <= lines.last) continue;
    const std::string_view line = lines.all[at];
    if (trimmed(line, kBlanks).starts_with("File \"")) return false;
    if (is_code(line)) {
      ++code;
    } else if (trimmed(line, " \t\r{}[](),;").empty() || line.find('"') != std::string_view::npos) {
      continue;  // other strings, and what only opens or closes, are those of data, too
    }
    ++count;
  }
  return code >= kLeast && 4 * code >= 3 * count;
}

bool is_in_code(const Lines& lines, std::string_view before) {
  const std::string_view line = lines.all[lines.own];
  if (std::count(before.begin(), before.end(), '"') % 2 == 1 && is_among_code(lines)) return true;
  const std::size_t mark = opening_mark(before);
  if (mark != std::string_view::npos && std::count(before.begin(), before.end(), before[mark]) % 2 == 1) {
    const std::string_view left = left_of(before, mark);
    if (trimmed(left, kBlanks).empty()) return is_string(line) && is_opened_by_code(lines, lines.own);
    const char quote = before[mark];
    if (is_assignment(left) && (ends_string(line, quote) || line.find(quote, before.size()) == std::string_view::npos))
      return true;
    if (is_call(left) && line.find(quote, before.size()) != std::string_view::npos) return true;
  }
  return is_in_long_string(lines, before);
}

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

/// The width of the mark of a list item, after its indentation: "- ", "* ", "12. "; 0: none.
std::size_t item_mark(std::string_view line) {
  const std::string_view words = line.substr(indent_of(line));
  for (const std::string_view mark : {"- ", "* ", "+ ", "\xe2\x80\xa2 "})
    if (words.starts_with(mark)) return mark.size();
  const std::size_t digits = std::min(words.find_first_not_of("0123456789"), words.size());
  const bool is_number = digits > 0 && digits < 3 && digits + 1 < words.size() && words[digits + 1] == ' ' &&
                         (words[digits] == '.' || words[digits] == ')');
  return is_number ? digits + 2 : 0;
}
bool is_heading(const Lines& lines, std::size_t at) {
  const std::string_view line = lines.all[at];
  if (line.starts_with('#')) return line.substr(std::min(line.find_first_not_of('#'), line.size())).starts_with(' ');
  return at > 0 && line.size() > 2 && line.find_first_not_of("=-~^") == std::string_view::npos &&
         !is_blank(lines.all[at - 1]);
}
/// An error: its class, a failed allocation, or a span of code.
bool is_error(std::string_view item) {
  const std::string words = lower(item);
  const std::string_view first = std::string_view(words).substr(0, words.find(' '));
  return first.ends_with("error:") || first.ends_with("exception:") || first.ends_with("error") ||
         item.starts_with('`') || has_statement(words);
}
/// Whether somebody writes of themselves: then a block or a list is what happened to them.
bool has_writer(const Lines& lines) {
  return std::any_of(lines.all.begin(), lines.all.end(),
                     [](std::string_view line) { return names_writer(lower(line)); });
}

/// Whether a line that introduces others reports what happened: "2 errors occurred:", "It failed with:". A participle
/// behind an article, or of the present, does not: "An expected error:", "It is raised so:".
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

bool is_listed(const Lines& lines) {
  const std::string_view own = lines.all[lines.own];
  if (item_mark(own) == 0) return false;
  const std::size_t indent = indent_of(own);
  bool has_other = false;
  const auto look = [&](std::string_view line) {
    if (is_blank(line) || indent_of(line) > indent) return true;  // the rest of an item
    if (item_mark(line) == 0 || indent_of(line) < indent) return false;
    has_other = has_other || is_error(line.substr(indent + item_mark(line)));
    return true;
  };
  for (std::size_t at = lines.own + 1; at < lines.all.size() && look(lines.all[at]);) ++at;
  std::size_t first = lines.own;
  while (first > 0 && look(lines.all[first - 1])) --first;
  if (!has_other || first == 0) return false;
  const std::string_view above = trimmed(lines.all[first - 1], " \t\r*");
  // "errors:" alone is a key of YAML.
  const bool is_title = above.ends_with(':') && above.find(' ') != std::string_view::npos && !reports_past(above);
  return (is_heading(lines, first - 1) || is_title) && !has_writer(lines);
}

/// Whether `words`, in lower case, have what a run alone has: the status of a program that ended, the number of a
/// process, an address, a path below the folder of a user.
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

/// Whether only a run writes `line`.
bool is_of_run(std::string_view line) {
  const std::string words = lower(trimmed(line, kBlanks));
  if (words.empty()) return false;
  constexpr std::string_view kBegins =
      "traceback |file \"|at |$ |>>> |ps c:|c:\\|[|(|{|info|warn|error:|error |fatal|debug|critical|e |w |i |==|--|+-|"
      "thread '|terminate called|what():|aborted|killed|level=|time=|ts=";
  if (begins_any(words, kBegins)) return true;
  for (std::size_t i = 2; i + 2 < words.size(); ++i) {
    // "12:00:01", "2026-03-01", "train.py:12"
    const bool has_digits = is_digit(words[i - 2]) && is_digit(words[i - 1]) && is_digit(words[i + 1]);
    if (has_digits && is_digit(words[i + 2]) && (words[i] == ':' || words[i] == '-')) return true;
    if (words[i] != ':' || !is_digit(words[i + 1])) continue;
    std::size_t from = i;
    while (from > 0 && is_name_char(words[from - 1])) --from;
    if (from > 0 && from < i && words[from - 1] == '.' && !is_digit(words[i - 1])) return true;
  }
  return false;
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
    if (is_changed && is_code(line.substr(1)))
      ++code;
    else if (!is_changed && indent_of(line) == 0 && names_writer(lower(line)))
      return false;
  }
  return code >= kLeast;
}

}  // namespace

Place place_of(std::string_view text, std::size_t begin, std::size_t end, bool is_document) {
  const Lines lines(text, begin, end);
  const std::size_t from = begin - std::min(begin, kPlaceBeforeBytes);
  std::string_view before = text.substr(from, begin - from);
  before.remove_prefix(before.rfind('\n') + 1);
  if (is_in_code(lines, before)) return Place::code;
  if (is_help(lines)) return Place::help;
  if (is_listed(lines)) return Place::list;
  if (is_of_change(lines)) return Place::change;
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
