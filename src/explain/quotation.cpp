#include "explain/quotation.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "explain/pattern.hpp"
#include "explain/prose.hpp"
#include "explain/statement.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// Statements that raise, catch or compare errors.
constexpr std::string_view kStatements = "except|raise|elif|catch|throw|case|return|assert|grep|#define";

std::string_view without_blanks_at_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

/// In lower case, with ASCII quotation marks and Markdown instead of typographic ones and HTML, and with the line feeds
/// that JSON and Python escape.
std::string plain(std::string_view text) {
  static constexpr struct {
    std::string_view mark;
    std::string_view plain;
  } kMarks[] = {{"\xe2\x80\x9c", "\""}, {"\xe2\x80\x9d", "\""}, {"\xe2\x80\x98", "'"}, {"\xe2\x80\x99", "'"},
                {"<code>", "`"},        {"</code>", "`"},       {"<b>", "*"},          {"</b>", "*"},
                {"<strong>", "*"},      {"</strong>", "*"},     {"<li>", "- "},        {"\\item ", "- "},
                {"\\n", "\n"}};
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool may_begin = text[i] == '\xe2' || text[i] == '<' || text[i] == '\\';
    const auto mark =
        !may_begin ? std::end(kMarks) : std::find_if(std::begin(kMarks), std::end(kMarks), [&](const auto& known) {
          return text.substr(i).starts_with(known.mark);
        });
    if (mark != std::end(kMarks)) {
      out += mark->plain;
      i += mark->mark.size();
    } else {
      out += text[i] == '\n' ? '\n' : normal(text[i]);
      ++i;
    }
  }
  return out;
}

/// The beginning of the message, including names of exceptions before it: "RuntimeError: X".
std::size_t begin_with_classes(std::string_view before) {
  std::size_t begin = before.size();
  for (;;) {
    const std::string_view rest = without_blanks_at_end(before.substr(0, begin));
    if (!rest.ends_with("error:") && !rest.ends_with("exception:") && !rest.ends_with("what():")) return begin;
    const std::size_t word = rest.find_last_of(" \t\"'`*(|[>{=");
    begin = word == std::string_view::npos ? 0 : word + 1;
    if (begin == 0) return 0;
  }
}

/// Marks of quoted mail, diffs, debuggers and searches before a line of code.
std::string_view code_of(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t+->|0123456789:}"), line.size()));
}

/// The beginning of the code span around the message: "emits the `TERM: X` message".
std::size_t begin_of_span(std::string_view before, std::string_view after) {
  const bool is_open = std::count(before.begin(), before.end(), '`') % 2 == 1 && after.find('`') < after.size();
  return is_open ? before.rfind('`') + 1 : before.size();
}

/// A name as in programs: CUDA_ERROR_OUT_OF_MEMORY.
bool is_name(std::string_view text) {
  return text.find(' ') == std::string_view::npos;
}

bool is_exception(std::string_view name) {
  // A call of a logger.
  if (name.ends_with(".error") || name.ends_with(".exception")) return false;
  return name.ends_with("error") || name.ends_with("exception");
}

/// A name among others, in an expression or in a declaration: "X,", "f(X);", "X()", "a = X,", "X = a,", "X error;".
bool is_used_as_name(std::string_view code, std::string_view left, std::string_view after, bool is_value) {
  const std::string_view right = trimmed(after);
  if (right == ",") return (code.empty() && !is_value) || left.ends_with("=");
  if (right.starts_with("= ") && right.ends_with(",")) return true;
  const std::size_t word_end = right.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  return right == ";" || right.starts_with(");") || right.starts_with("));") || after.starts_with("(") ||
         (word_end > 0 && word_end != std::string_view::npos && right.substr(word_end) == ";");
}

/// Inside a multi-line comment of C and similar languages: " * may fail for lack of memory".
bool is_in_comment(std::string_view before, std::string_view line_above) {
  const std::string_view above = trimmed(line_above);
  return before.starts_with(" ") && trimmed(before).starts_with("*") &&
         (above.starts_with("*") || above.starts_with("/*"));
}

/// The next line underlines this one, so it is a heading.
bool is_underlined(std::string_view before, std::string_view message, std::string_view lines) {
  const std::size_t begin = lines.find('\n');
  if (begin == std::string_view::npos || !trimmed(before).empty()) return false;
  const std::string_view next = trimmed(lines.substr(begin + 1, lines.find('\n', begin + 1) - begin - 1));
  const std::string_view after = trimmed(lines.substr(0, begin));
  return !next.empty() && next.find_first_not_of(next.front()) == std::string_view::npos &&
         std::string_view("=-~^").find(next.front()) != std::string_view::npos &&
         next.size() == message.size() + after.size();
}

bool is_in_code(std::string_view before, std::string_view message, std::string_view after) {
  const std::string_view code = code_of(before);
  if (begins_any(code, "# |## |###|% |//|/*|\"\"\"") || has_any(before, "/*|<!--|  # |:  #|: # | //|@throw|\\throw"))
    return true;
  // A template, or an alerting rule: "summary: X on {{ $labels.instance }}".
  if (has_any(before, "{{") || has_any(after, "{{")) return true;
  const std::string_view key = trimmed(before, " \t-\"'");
  if (key == "alert:" || (is_ascii_letter(key.empty() ? ' ' : key.front()) && before.front() == ' ' &&
                          begins_any(key, "summary:|description:")))
    return true;
  const std::string_view first = code.substr(0, std::min(code.find_first_of(" \t("), code.size()));
  // "case 3: X" is not a statement, but the beginning of a log line.
  if (is_any(first, kStatements) && code.find(": ") == std::string_view::npos) return true;
  // The end of another name: PodOOMKilled.
  if (is_name(message) && is_ascii_letter(message.front()) && !before.empty() && is_ascii_letter(before.back()) &&
      (before.size() < 2 || before[before.size() - 2] != '\\'))
    return true;
  // A string in a call, preceded by other arguments; but an error's value has words: DriverError(2, "out of memory").
  const std::size_t mark = before.find_last_of("\"'`");
  const bool is_open = mark != std::string_view::npos && after.find(before[mark]) != std::string_view::npos &&
                       std::count(before.begin(), before.end(), before[mark]) % 2 != 0;
  if (is_open && has_any(after, ");|):") && !is_exception(code.substr(0, code.find('(')))) return true;
  const std::string_view words = without_blanks_at_end(before);
  if (is_any(words.substr(words.find_last_of(" \t(;{") + 1), kStatements)) return true;
  // A pattern: /X/, %X%.
  if (!before.empty() && !after.empty() && before.back() == after.front() &&
      (after.front() == '/' || after.front() == '%'))
    return true;
  const std::string_view left = without_blanks_at_end(before);
  const std::string_view right = trimmed(after, " \t\"'}])");
  // A counter with value zero.
  if (right == "0" && after.starts_with("\"}")) return true;
  if (is_name(message) && is_used_as_name(code, left, after, message.find(':') != std::string_view::npos)) return true;
  // Names and strings are combined; "X && Y" of two messages is not code.
  const bool is_combined = left.ends_with("&&") || left.ends_with("||") || right.starts_with("&&");
  if (is_combined && (is_name(message) || (!before.empty() && is_quote_mark(before.back())))) return true;
  return left.ends_with("==") || left.ends_with("!=") || right.starts_with("==") ||
         (right.starts_with("> ") && !left.ends_with("<")) || right.starts_with("< ") || right.starts_with("!=") ||
         after.starts_with("&") ||
         (right.starts_with("= ") && right.size() > 2 && (right[2] == '-' || (right[2] >= '0' && right[2] <= '9')));
}

/// What follows the term in a list: ": lower the batch size".
bool explains(std::string_view rest) {
  constexpr std::string_view kMarks = ": |：|- |-> |\xe2\x80\x94|\xe2\x80\x93|\xe2\x86\x92";
  return begins_any(rest, kMarks);
}

/// Whether `before` ends with a quotation mark that closes in `after`, and the surrounding text shows that the message
/// is a term or a string among others, not the value of a field or the text of an exception.
bool is_term(std::string_view before, std::string_view after, const Sentence& sentence, bool has_class) {
  if (before.empty() || !is_quote_mark(before.back())) return false;
  const char mark = before.back();
  const std::size_t close = after.find(mark);
  if (close == std::string_view::npos) return false;
  std::string_view left = before.substr(0, before.find_last_not_of(mark) + 1);
  // Python's r"..." and f"...".
  if (left.size() > 1 && std::string_view("rbfu").find(left.back()) != std::string_view::npos &&
      !is_ascii_letter(left[left.size() - 2]))
    left.remove_suffix(1);
  const std::string_view right = after.substr(std::min(after.find_first_not_of(mark, close), after.size()));
  const bool is_exact = trimmed(after.substr(0, close), " .!").empty();
  const std::string_view code = without_blanks_at_end(left);
  const std::string_view line = code_of(left);
  if (line.empty() || trimmed(line, "*# \t").empty()) {
    // Users begin their reports with the whole error in quotes: "`RuntimeError: X` on my card".
    const std::string_view rest = trimmed(right, " \t.!");
    return is_exact && (has_class ? explains(rest) : !rest.empty());
  }
  const bool has_blank = code.size() < left.size();
  const char last = code.back();
  if (last == '=' && has_blank) return is_exact;
  if (last == '(') {
    return !is_exception(code.substr(0, code.size() - 1));
  }
  // "{2: 'CUDA_ERROR_OUT_OF_MEMORY', ": a table of codes.
  const std::size_t key = code.substr(0, code.size() - 1).find_last_not_of("0123456789");
  const bool is_numbered = last == ':' && key != std::string_view::npos && key + 2 < code.size() &&
                           (code[key] == '{' || code[key] == ' ' || code[key] == ',');
  if (is_numbered && is_name(after.substr(0, close))) return is_exact;
  // An error's value is not a list: "DriverError(2, "X")".
  if (last == ',' || last == '[' || last == '{')
    return is_exact && !has_class && !is_exception(line.substr(0, line.find('(')));
  // "HIP driver error 'X'" is all that the line has: the error's name.
  if (has_blank && code.ends_with(" error") && is_exact && trimmed(right, " \t.").empty() && sentence.is_label())
    return false;
  if (has_blank && (is_ascii_letter(last) || last == ')'))
    return !sentence.reports_event() && !sentence.is_own_report();
  // "'X' in solver.cu:220" is a location, not text that contains X.
  return begins_any(trimmed(right, " "), "in str(|in repr(|in text|in line|in msg|in message|in output|in log|not in ");
}

/// An entry of a list or of a table: messages only, or an explanation of X: "- X: lower the batch size", "| X | lower
/// the batch size |".
bool is_entry(std::string_view before, std::string_view after, bool has_class) {
  const std::string_view mark = trimmed(before, " \t*_`");
  const std::string_view rest = after.substr(std::min(after.find_first_not_of("*_`. "), after.size()));
  const bool has_words = rest.find(' ', 2) != std::string_view::npos;
  if (mark == "|") return rest.starts_with("| ") && has_words && is_ascii_letter(rest[2]);
  const bool is_numbered = !mark.empty() && mark.find_first_not_of("0123456789.)") == std::string_view::npos &&
                           (mark.back() == '.' || mark.back() == ')');
  const bool is_bullet =
      mark == "-" || mark == "\xe2\x80\xa2" || is_numbered || (mark.empty() && trimmed(before, " \t") == "*");
  // "* `NOMEM`: out of memory"
  const std::string_view item = trimmed(before, " \t");
  if (item.size() > 4 && (item.starts_with("* ") || item.starts_with("- ")) && is_quote_mark(item[2]) &&
      item.ends_with(':') && is_quote_mark(item[item.size() - 2]))
    return true;
  if (is_bullet && !has_class && trimmed(rest, " \t\r.").empty()) return true;
  return (is_bullet && explains(rest) && has_words) || mark.ends_with("[ ]") || mark.ends_with("[x]");
}

/// The sentence of the previous line continues after the message, which is wrapped: `after` begins in lower case.
bool is_wrapped(std::string_view above, std::string_view after) {
  after = trimmed(after, " \t\r\n.\"'`");
  if (above.empty() || !is_ascii_letter(above.back()) || after.empty()) return false;
  return is_ascii_letter(after.front()) || after.front() == ',';
}

/// A line of code, or of a traceback that shows it with its number: "74 if previous_handler is not None:".
bool is_code_line(std::string_view line) {
  const std::size_t at = line.find_first_not_of("0123456789-> \t");
  return at > 0 && at != std::string_view::npos && (is_ascii_letter(line[at]) || line[at] == '@') &&
         line.ends_with(':') && line.front() != '-';
}

/// "pair_lj_cut_gpu.cpp:110": the place in the code that prints it.
bool is_place(std::string_view word) {
  const std::size_t colon = word.find(':');
  return colon != std::string_view::npos && colon + 1 < word.size() && colon > 2 &&
         word.substr(0, colon).find('.') != std::string_view::npos && is_digit(word[colon + 1]) &&
         word.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

/// "00:31:12.904", at the beginning of a log line.
bool is_clock(std::string_view word) {
  return word.size() >= 8 && word[2] == ':' && word[5] == ':' &&
         word.find_first_not_of("0123456789:.,") == std::string_view::npos;
}

/// A program wrote the line: it begins with a level or a code location, or contains a level between marks: "Error: X",
/// "nvenc : Error on X", "worker.ts:8 X", "| 12:00 | ERROR | X".
bool is_logged(std::string_view before) {
  const std::string_view line = trimmed(before, " \t\"'#*%/|");
  const std::string_view first = line.substr(0, line.find(' '));
  const std::string_view second = line.substr(std::min(first.size() + 1, line.size()));
  constexpr std::string_view kLevels = "error:|fatal:|critical:|[error]|[e]|[fatal]|err:|[warn]|[w]";
  if (is_any(first, kLevels) || is_place(first) || is_clock(first)) return true;
  if (first.ends_with(':') && is_any(second.substr(0, second.find(' ')), kLevels)) return true;
  // The bar of a column cannot occur in a list.
  if (line.find("| error |") != std::string_view::npos || has_any(line, " - error - |][fatal]|][e]|][error]"))
    return true;
  const std::size_t mark = line.find(" : error");
  return mark != std::string_view::npos && line.find(' ') == mark;
}

/// An inline code span that is a program's line, with its level or code location: "yields `ERROR on proc 0: X
/// (pair.cpp:110)`".
bool is_logged_span(std::string_view before, std::string_view message, std::string_view after) {
  const std::size_t open = before.rfind('`');
  const std::size_t close = after.find('`');
  if (open == std::string_view::npos || close == std::string_view::npos) return false;
  const std::string span =
      std::string(before.substr(open + 1)) + std::string(message) + std::string(after.substr(0, close));
  if (begins_any(span, "error |error:|fatal|[")) return true;
  const std::string_view last = trimmed(std::string_view(span).substr(span.find_last_of(" (") + 1), "()");
  return is_place(last.substr(last.rfind('/') + 1));
}

/// Whether the rest of a line ends with the place in code that prints it: "', /src/device/mod.rs:328:22".
bool ends_with_place(std::string_view after) {
  const std::size_t comma = after.rfind(", ");
  if (comma == std::string_view::npos) return false;
  const std::string_view path = trimmed(after.substr(comma + 2));
  const std::string_view line = path.substr(0, path.rfind(':'));
  const std::string_view column = path.substr(line.size());
  return column.size() > 1 && column.find_first_not_of("0123456789", 1) == std::string_view::npos &&
         is_place(line.substr(line.rfind('/') + 1));
}

/// Whether a line begins with the class of an error, so that what follows is the program's sentence, however it is
/// worded: "Vendor.CudaException: ErrorOutOfMemory: The call failed because ...".
bool is_raised(std::string_view before) {
  const std::size_t colon = before.find(": ");
  return colon != std::string_view::npos && before.find(' ') > colon && is_exception(before.substr(0, colon));
}

/// "CUDA error: ", not a line with a place in code.
bool is_name_of_line(std::string_view before) {
  constexpr std::size_t kLongest = 32;
  return before.size() < kLongest && without_blanks_at_end(before).ends_with(':') &&
         before.find_first_of("0123456789") == std::string_view::npos;
}

/// "[GPU Light Cache ]"
bool is_tag(std::string_view before) {
  const std::string_view words = trimmed(before, " \t");
  return words.starts_with('[') && words.find(']') == words.size() - 1;
}

/// Whether the sentence above a message on its own line is about the message in general: it continues after it, or
/// introduces it with a colon, also above the fence of a code block. `is_labelled`: something stands before it on its
/// line, so that only a colon introduces it.
bool is_introduced(std::string_view lines_above, std::string_view after, bool is_labelled) {
  bool is_next = true;
  bool is_in_fence = false;
  while (!lines_above.empty()) {
    const std::size_t begin = lines_above.rfind('\n') + 1;
    const std::string_view line = trimmed(lines_above.substr(begin), " \t\r>*");
    const bool is_fence = line.starts_with("```") || line.starts_with("~~~");
    if (!line.empty() && !is_fence) {
      const bool goes_on = (is_next && is_wrapped(line, after)) || (is_in_fence && is_ascii_letter(line.back()));
      if (line.ends_with(':') || (goes_on && !is_labelled)) return !is_code_line(line) && addresses_reader(line);
      // Other messages are introduced with it: "It can stop with the following error:".
      if (!has_statement(line)) return false;
    }
    is_next = false;
    is_in_fence = is_in_fence || is_fence;
    lines_above = lines_above.substr(0, begin == 0 ? 0 : begin - 1);
  }
  return false;
}

/// "OOMKilled:false", "\"oom\": 0": it did not happen.
bool is_denied(std::string_view after) {
  const std::size_t at = std::min(after.find_first_not_of("\"'` "), after.size());
  if (after == " 0" || after.starts_with(" 0\n")) return true;  // a counter with value zero
  if (at >= after.size() || (after[at] != ':' && after[at] != '=')) return false;
  const std::string_view value = trimmed(after.substr(at + 1), " \"'");
  const std::size_t end = std::min(value.find_first_of(" ,}\"'\n\r;"), value.size());
  return is_any(lower(value.substr(0, end)), "false|no|none|never|0") && (end == value.size() || value[end] != ' ');
}

}  // namespace

Mention mention_of(std::string_view text, std::size_t begin, std::size_t end, std::size_t figure_count) {
  if (is_denied(text.substr(end, text.find('\n', end) - end))) return Mention::marked;
  if (figure_count >= 2) return Mention::none;
  const std::size_t from = begin - std::min(begin, kBeforeBytes);
  const std::string all_before = plain(text.substr(from, begin - from));
  const std::string all_after = plain(text.substr(end, kAfterBytes));
  const std::string_view after = std::string_view(all_after).substr(0, all_after.find('\n'));
  const bool has_remedy = is_answered(plain(text.substr(end, kAnswerBytes)));
  const std::size_t line = all_before.rfind('\n') + 1;
  const std::string_view before = std::string_view(all_before).substr(line);
  const std::string_view before_class = before.substr(0, begin_with_classes(before));
  const bool has_class = before_class.size() < before.size();
  const std::string_view before_span = before.substr(0, begin_of_span(before, after));
  const bool begins = trimmed(before_class, " \t>|`*\"'").empty();
  const bool is_labelled = is_tag(before_class) || is_name_of_line(before);
  // A wrapped line continues the sentence of the previous line.
  const std::string_view above = std::string_view(all_before).substr(0, line == 0 ? 0 : line - 1);
  const std::string_view line_above = trimmed(above.substr(above.rfind('\n') + 1));
  const std::string_view begin_of_line = trimmed(before);
  const bool is_rest = !begin_of_line.empty() && is_ascii_letter(begin_of_line.front()) && !line_above.empty() &&
                       is_ascii_letter(line_above.back()) && begin_of_line.find(':') == std::string_view::npos;
  const std::string joined = is_rest ? std::string(line_above) + ' ' + std::string(begin_of_line) : std::string(before);
  const std::string message = plain(text.substr(begin, end - begin));
  const Sentence sentence(joined, message, after);
  // A commented log line reports an event, if it contains a size.
  const bool is_reported = figure_count > 0 && has_class && before_class.find("error") == std::string_view::npos;
  if (is_logged(before) || ends_with_place(after) || is_logged_span(before, message, after) ||
      (is_reported && trimmed(before_class, " #*/%").empty()))
    return has_remedy || (line >= 2 && all_before.find("```") != std::string::npos &&
                          is_introduced(std::string_view(all_before).substr(0, line - 1), after, false))
               ? Mention::marked
               : Mention::none;
  if (is_in_code(before, message, after) || is_in_comment(before, line_above) ||
      is_entry(before_class, after, has_class) || is_spoken_of(after, false) || has_remedy ||
      is_underlined(before, message, all_after) || sentence.is_hypothetical() ||
      is_term(before, after, sentence, false) || is_term(before_class, after, sentence, has_class) ||
      (before_span.size() < before.size() &&
       is_term(before_span, after, Sentence(before_span, message, after), true)) ||
      ((begins || is_labelled) && line >= 2 &&
       is_introduced(std::string_view(all_before).substr(0, line - 1), text.substr(end, kAfterBytes), !begins)))
    return Mention::marked;
  const bool is_general = !is_raised(before) && (sentence.is_general() || is_general_in_cjk(before, after));
  return is_general || (begins && !has_class && is_spoken_of(after, true)) ? Mention::spoken : Mention::none;
}

}  // namespace vramtrack::explain
