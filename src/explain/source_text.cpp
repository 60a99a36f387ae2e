#include "explain/source_text.hpp"

#include <algorithm>
#include <string>

#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// Lines of an array of strings, and of source that a traceback shows, that are looked at.
constexpr std::size_t kListLines = 32;
constexpr std::size_t kShownLines = 8;

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

/// A line of data in code: it begins with a string, behind the brackets that open it, and ends as one: ("X", 1), {"a",
/// "X"}, (1, 'X'). `is_keyed`: a key begins it, as in JSON.
bool is_element(std::string_view line, bool& is_keyed) {
  std::string_view code = trimmed(line, kBlanks);
  const bool has_bracket = code.find_first_not_of("([{") > 0;
  code.remove_prefix(std::min(code.find_first_not_of("([{ "), code.size()));
  const std::size_t mark = opening_mark(code);
  if (mark == std::string_view::npos) return false;
  // The name of a field, or the number of a row.
  const std::string_view label = trimmed(left_of(code, mark), kBlanks);
  const auto is_label_char = [](char c) { return is_name_char(c) || c == ':' || c == ',' || c == ' '; };
  if (!label.empty() && ((label.back() != ':' && label.back() != ',') || (!has_bracket && label.back() != ':') ||
                         !std::all_of(label.begin(), label.end(), is_label_char)))
    return false;
  const std::size_t close = code.find(code[mark], mark + 1);
  is_keyed = (!label.empty() && !has_bracket) ||
             (close != std::string_view::npos && trimmed(code.substr(close + 1), kBlanks).starts_with(':'));
  constexpr std::string_view kEnds = ",;)]}+\\";
  return code.size() > mark + 1 && (code.back() == code[mark] || kEnds.find(code.back()) != std::string_view::npos);
}

/// The line above the strings at `at` that opens them: "TEXTS = [", "f(", "tests := []struct{...}{", "... VALUES". In
/// JSON, a key opens them: "\"lines\": [".
bool is_opened_by_code(const Lines& lines, std::size_t at) {
  for (std::size_t count = 0; at > 0 && count < kListLines; ++count) {
    const std::string_view line = trimmed(lines.all[--at], kBlanks);
    bool is_keyed = false;
    if (line.empty() || is_element(line, is_keyed) || line.starts_with('#') || line.starts_with("//")) continue;
    if (line == "}{" || lower(line).ends_with(" values")) return true;
    if (line.find_first_not_of("[({])},") == std::string_view::npos) continue;
    if (line.back() != '[' && line.back() != '(' && line.back() != '{') return false;
    // What stands behind the mark of an assignment is the type of the array: "= &[", "= new String[] {".
    const std::size_t mark = line.find("= ");
    const std::string_view left = line.substr(0, line.size() - 1);
    const bool is_typed = mark != std::string_view::npos && is_assignment(line.substr(0, mark + 2)) &&
                          opening_mark(line) == std::string_view::npos;
    return is_typed || is_assignment(std::string(left) + ' ') || is_assignment(left) || is_call(line);
  }
  return false;
}

/// Inside """ or ''' that an assignment, a call or a definition opens.
bool is_in_long_string(const Lines& lines) {
  for (std::size_t at = lines.own + 1; at-- > 0;) {
    const std::string_view line = at == lines.own ? lines.before : lines.all[at];
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
    if (is_source_line(line)) {
      ++code;
    } else if (trimmed(line, " \t\r{}[](),;").empty() || line.find('"') != std::string_view::npos) {
      continue;  // other strings, and what only opens or closes, are those of data, too
    }
    ++count;
  }
  return code >= kLeast && 4 * code >= 3 * count;
}

/// "grep -q ", "  if rg -n ", "$ logger -t ": a command with options alone, whose argument follows. Without options, a
/// pipe, a file for its output, or files have to follow the string: `rest`.
bool is_command(std::string_view left, std::string_view rest) {
  std::string_view command = trimmed(left, kBlanks);
  for (const std::string_view mark : {"| ", "&& ", "; "})
    if (const std::size_t at = command.rfind(mark); at != std::string_view::npos)
      command.remove_prefix(at + mark.size());
  for (const std::string_view word : {"$ ", "+ ", "if ", "elif ", "while ", "until ", "! "})
    if (command.starts_with(word)) command.remove_prefix(word.size());
  const std::size_t name = command.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (name == 0 || command.empty()) return false;
  if (name == std::string_view::npos)
    return rest.size() > 2 && rest.front() == ' ' && std::string_view("|><*").find(rest[1]) != std::string_view::npos;
  if (command[name] != ' ') return false;
  for (std::size_t at = name; at < command.size();) {
    at = std::min(command.find_first_not_of(' ', at), command.size());
    const std::string_view option = command.substr(at, command.find(' ', at) - at);
    if (option.size() < 2 || option[0] != '-' || !(is_ascii_letter(option[1]) || option[1] == '-')) return false;
    at += option.size();
  }
  return true;
}

bool is_in_open_string(std::string_view before) {
  const std::size_t mark = opening_mark(before);
  return mark != std::string_view::npos && std::count(before.begin(), before.end(), before[mark]) % 2 == 1;
}

/// Whether the string around the message is one of code, by the line that has it alone. `line` begins as `before` does.
bool is_string_of_code(std::string_view line, std::string_view before) {
  const std::size_t mark = opening_mark(before);
  const std::string_view left = left_of(before, mark);
  const char quote = before[mark];
  const std::size_t close = line.find(quote, before.size());
  const bool is_closed = close != std::string_view::npos;
  return (is_assignment(left) && (ends_string(line, quote) || !is_closed)) ||
         (is_closed && (is_call(left) || is_command(left, line.substr(close + 1))));
}

/// Whether a traceback, pytest or a compiler shows the message's line as the source of a program.
bool is_shown_source(const Lines& lines) {
  const std::string_view own = lines.all[lines.own];
  // The lines of a quoted mail begin so, too.
  const auto is_quoted = [&lines](std::size_t at) { return at < lines.all.size() && lines.all[at].starts_with('>'); };
  if (own.starts_with(">   ") && !is_quoted(lines.own - 1) && !is_quoted(lines.last + 1)) return true;
  // pdb names the place above.
  if (own.starts_with("-> ") && lines.own > 0 && lines.all[lines.own - 1].starts_with("> ")) return true;
  const std::size_t digits = std::min(own.find_first_not_of("0123456789", indent_of(own)), own.size());
  if (digits > indent_of(own) && trimmed(own.substr(digits), kBlanks).starts_with('|')) return true;
  const std::size_t indent = indent_of(own);
  for (std::size_t at = lines.own; at > 0 && lines.own - at < kShownLines;) {
    const std::string_view line = lines.all[--at];
    if (trimmed(line, kBlanks).starts_with("File \"") && line.find(", line ") != std::string_view::npos)
      return at + 1 == lines.own || indent_of(line) < indent;
    if (is_blank(line) || indent_of(line) == 0) return false;
  }
  return false;
}

bool is_in_hunk(const Lines& lines) {
  for (std::size_t at = lines.own + 1; at-- > 0;) {
    if (lines.all[at].starts_with("@@ ")) return true;
    if (!lines.all[at].empty() && std::string_view("+- \\").find(lines.all[at].front()) == std::string_view::npos)
      return false;
  }
  return false;
}
std::size_t digits_end(std::string_view line, std::size_t from) {
  return std::min(line.find_first_not_of("0123456789", from), line.size());
}
/// "12:" or "12-" with which a search begins its lines below the name of their file; 0: none.
std::size_t number_width(std::string_view line) {
  const std::size_t end = digits_end(line, 0);
  return end > 0 && end < line.size() && (line[end] == ':' || line[end] == '-') ? end + 1 : 0;
}
bool is_path(std::string_view line) {
  const std::size_t dot = line.rfind('.');
  return dot != std::string_view::npos && dot > 0 && line.find_first_of(" \t:") == std::string_view::npos;
}
/// What a diff, a search or `git blame` puts before the lines that it shows: "+", "src/x.py:12:", "1f3c9e21 (Ann
/// 2026-03-01 10:00:00 +0100 12)"; 0: nothing.
std::size_t shown_width(const Lines& lines) {
  const std::string_view own = lines.all[lines.own];
  if (is_in_hunk(lines)) return 1;
  if (const std::size_t width = number_width(own); width > 0) {
    std::size_t above = lines.own;
    while (above > 0 && number_width(lines.all[above]) > 0) --above;
    return is_path(lines.all[above]) ? width : 0;
  }
  constexpr std::size_t kLeastHash = 7;
  const std::size_t hash = std::min(own.find_first_not_of("^0123456789abcdef"), own.size());
  const std::size_t close = own.find(") ");
  if (hash >= kLeastHash && own.substr(hash).starts_with(" (") && close != std::string_view::npos)
    return is_digit(own[close - 1]) ? close + 1 : 0;
  const std::size_t file = std::min(own.find_first_of(": \t"), own.size());
  if (!is_path(own.substr(0, file)) || file + 1 >= own.size()) return 0;
  const std::size_t line = digits_end(own, file + 1);
  return line > file + 1 && line < own.size() && own[line] == ':' ? line + 1 : 0;
}

/// The word that ends the here-document that a line opens: `cat > log <<'EOF'`; empty: it opens none.
std::string_view here_word(std::string_view line) {
  const std::size_t mark = line.find("<<");
  if (mark == std::string_view::npos) return {};
  const std::size_t begin = line.find_first_not_of("-~'\"\\", mark + 2);
  if (begin == std::string_view::npos) return {};
  std::size_t end = begin;
  while (end < line.size() && is_name_char(line[end])) ++end;
  return line.substr(begin, end - begin);
}
bool is_in_here_document(const Lines& lines) {
  const auto ends_at = [&lines](std::size_t from, std::size_t until, std::string_view word) {
    for (std::size_t at = from; at < until; ++at)
      if (trimmed(lines.all[at], kBlanks) == word) return true;
    return false;
  };
  for (std::size_t at = 0; at < lines.own; ++at)
    if (const std::string_view word = here_word(lines.all[at]);
        !word.empty() && !ends_at(at + 1, lines.own, word) && ends_at(lines.last + 1, lines.all.size(), word))
      return true;
  return false;
}

}  // namespace

bool is_source_line(std::string_view line) {
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

bool is_in_code(const Lines& lines) {
  const std::string_view line = lines.all[lines.own], before = lines.before;
  if (std::count(before.begin(), before.end(), '"') % 2 == 1 && is_among_code(lines)) return true;
  bool is_keyed = false;
  if (is_in_open_string(before) && (is_shown_source(lines) || is_string_of_code(line, before) ||
                                    (is_element(line, is_keyed) && is_opened_by_code(lines, lines.own))))
    return true;
  if (const std::size_t width = shown_width(lines); width > 0 && width < before.size()) {
    const std::string_view shown = before.substr(width), source = line.substr(width);
    if (is_in_open_string(shown) && (is_string_of_code(source, shown) || (is_element(source, is_keyed) && !is_keyed)))
      return true;
  }
  return is_in_here_document(lines) || is_in_long_string(lines);
}

}  // namespace vramtrack::explain
