#include "explain/quotation.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "explain/pattern.hpp"

namespace vramtrack::explain {
namespace {

using Words = std::span<const std::string_view>;

/// A sentence with one of these is about what may happen to its reader, wherever in the sentence the message stands.
constexpr std::string_view kConditions[] = {
    "if",       "you", "your",  "you're", "you'll",  "you've",   "whenever", "e.g.", "i.e.", "example",
    "examples", "how", "avoid", "avoids", "prevent", "prevents", "faq",      "tip",  "tips"};
/// A clause with one of these, right before the message, is about messages in general, or denies one. A colon or a
/// bracket ends the clause: "could not load the model: X" tells of X.
constexpr std::string_view kGeneral[] = {
    "when",      "avoiding",     "preventing",      "fix",      "fixes",    "fixed",    "fixing",
    "solve",     "solves",       "solved",          "resolve",  "resolves", "resolved", "handle",
    "handles",   "handling",     "handler",         "catch",    "catches",  "catching", "debug",
    "debugging", "troubleshoot", "troubleshooting", "mitigate", "causes",   "common",   "frequent",
    "see",       "errors",       "exceptions",      "issues",   "problems", "such",     "expect",
    "expects",   "expected",     "throws",          "raises",   "retries",  "prone"};
/// What did not happen.
constexpr std::string_view kDenials[] = {"no", "not", "never", "without"};
/// What may happen.
constexpr std::string_view kModals[] = {"may", "might", "can", "could", "would", "should"};
/// What did happen: stronger than the words above, except those of denial.
constexpr std::string_view kEvents[] = {
    "failed",     "crashed", "died",        "raised",   "threw",    "got",      "caught",  "hit",  "ran", "aborted",
    "terminated", "exited",  "encountered", "panicked", "returned", "reported", "printed", "said", "gave"};
/// "retry on X": what a program does where X happens.
constexpr std::string_view kReactions[] = {"retry",   "exit",     "stop",   "restart", "resume", "fall",
                                           "back",    "fallback", "reduce", "lower",   "skip",   "enabled",
                                           "retries", "restarts", "falls",  "halve"};
/// Words behind a message that speak of messages in general: "X errors", "X usually means".
constexpr std::string_view kGeneralAfter[] = {"errors",    "exceptions", "issues", "problems",  "failures",  "crashes",
                                              "means",     "usually",    "often",  "typically", "sometimes", "can",
                                              "may",       "might",      "could",  "should",    "will",      "if",
                                              "indicates", "happens",    "occurs", "is",        "are"};
/// Nouns between a message and what is said of it.
constexpr std::string_view kNouns[] = {"error", "exception", "message", "status", "problem", "issue"};
/// Statements that raise, catch or compare errors.
constexpr std::string_view kStatements[] = {"except", "raise",  "elif",   "catch",  "throw",
                                            "case",   "return", "assert", "#define"};

bool has(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool has_any(Words words, std::span<const std::string_view> of) {
  return std::any_of(words.begin(), words.end(), [of](std::string_view word) { return has(of, word); });
}

bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_quote_mark(char c) {
  return c == '"' || c == '\'' || c == '`' || c == '*';
}

std::string_view trimmed(std::string_view text, std::string_view marks = " \t\r\n") {
  const std::size_t from = std::min(text.find_first_not_of(marks), text.size());
  return text.substr(from, text.find_last_not_of(marks) + 1 - from);
}
std::string_view without_blanks_at_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

/// In lower case, with ASCII's quote marks and Markdown for the typographic ones and for HTML, and with the line
/// feeds that JSON and Python escape.
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
    const auto mark = std::find_if(std::begin(kMarks), std::end(kMarks),
                                   [&](const auto& known) { return text.substr(i).starts_with(known.mark); });
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

/// What stands before a message on its line.
struct Before {
  std::vector<std::string_view> sentence;
  std::vector<std::string_view> clause;
  std::vector<std::string_view> part;  ///< of the clause, behind the last comma

  explicit Before(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find_first_of(" =\"", at), text.size());
      if (end > at) add(text.substr(at, end - at));
      at = end + 1;
    }
  }

 private:
  void add(std::string_view raw) {
    const std::string_view word = trimmed(raw, "\"'`*_,:;!?()[]");
    const char last = raw.back();
    if (!word.empty()) {
      for (auto* const words : {&sentence, &clause, &part}) words->push_back(word);
    } else if (is_quote_mark(last)) {
      return;
    }
    const bool is_class = word.size() > 5 && (word.ends_with("error") || word.ends_with("exception"));
    if ((last == '.' && word != "e.g." && word != "i.e.") || last == '!' || last == '?' || last == ';') {
      for (auto* const words : {&sentence, &clause, &part}) words->clear();
    } else if ((last == ':' && !is_class) || last == ']' || last == '(' || raw.front() == '(' || word.empty() ||
               !is_letter(word.front())) {
      clause.clear();
      part.clear();
      if (raw.front() == '(' && !word.empty()) clause.push_back(word);
    } else if (last == ',') {
      part.clear();
    }
  }
};

/// The begin of the message with the names of exceptions before it: "RuntimeError: X".
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

/// Marks of quoted mail, differences, debuggers and searches before the code of a line.
std::string_view code_of(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t+->|0123456789:}"), line.size()));
}

/// A name as programs have it: CUDA_ERROR_OUT_OF_MEMORY.
bool is_name(std::string_view text) {
  return text.find(' ') == std::string_view::npos;
}

/// The function whose call a line begins with, where its first argument is a string; empty: there is none.
std::string_view called_with_string(std::string_view code) {
  const std::size_t end = code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.0123456789");
  if (end == std::string_view::npos || end == 0 || code[end] != '(') return {};
  const std::size_t mark = code.find_first_not_of("frbu", end + 1);
  if (mark == std::string_view::npos || !is_quote_mark(code[mark])) return {};
  return code.substr(0, end);
}

bool is_exception(std::string_view name) {
  return name.ends_with("error") || name.ends_with("exception");
}

/// A name among others, in an expression or in a declaration: "X,", "f(X);", "X()", "a = X,", "X = a,", "X error;".
bool is_used_as_name(std::string_view code, std::string_view left, std::string_view after) {
  const std::string_view right = trimmed(after);
  if (right == ",") return code.empty() || left.ends_with("=");
  if (right.starts_with("= ") && right.ends_with(",")) return true;
  const std::size_t word_end = right.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  return right.starts_with(");") || right.starts_with("));") || after.starts_with("(") ||
         (word_end > 0 && word_end != std::string_view::npos && right.substr(word_end) == ";");
}

bool is_in_code(std::string_view before, std::string_view message, std::string_view after) {
  const std::string_view code = code_of(before);
  if (code.starts_with("# ") || code.starts_with("## ") || code.starts_with("###") || code.starts_with("//") ||
      code.starts_with("/*") || code.starts_with("\"\"\"") || before.find("<!--") != std::string_view::npos ||
      before.find("  # ") != std::string_view::npos || before.find(":  #") != std::string_view::npos ||
      before.find(": # ") != std::string_view::npos || before.find(" //") != std::string_view::npos ||
      before.find("@throw") != std::string_view::npos || before.find("\\throw") != std::string_view::npos)
    return true;
  const std::string_view first = code.substr(0, std::min(code.find_first_of(" \t("), code.size()));
  // "case 3: X" is no statement, but the begin of a log line.
  if (has(kStatements, first) && code.find(": ") == std::string_view::npos) return true;
  if (const auto function = called_with_string(code); !function.empty() && !is_exception(function)) return true;
  const std::string_view words = without_blanks_at_end(before);
  if (has(kStatements, words.substr(words.find_last_of(" \t(;{") + 1))) return true;
  // The help of a program: "--retry  what to do on X".
  if (const auto option = trimmed(before); option.size() > 2 && option.starts_with("--") && is_letter(option[2]))
    return true;
  // A pattern: /X/, %X%.
  if (!before.empty() && !after.empty() && before.back() == after.front() &&
      (after.front() == '/' || after.front() == '%'))
    return true;
  const std::string_view left = without_blanks_at_end(before);
  const std::string_view right = trimmed(after, " \t\"'}])");
  // A counter that counted none.
  if (right == "0" && after.starts_with("\"}")) return true;
  if (is_name(message) && is_used_as_name(code, left, after)) return true;
  return left.ends_with("==") || left.ends_with("!=") || left.ends_with("&&") || left.ends_with("||") ||
         right.starts_with("==") || right.starts_with("!=") || right.starts_with("&&") || after.starts_with("&") ||
         (right.starts_with("= ") && right.size() > 2 && (right[2] == '-' || (right[2] >= '0' && right[2] <= '9')));
}

/// What stands behind the term of a list: ": lower the batch size".
bool explains(std::string_view rest) {
  static constexpr std::string_view kMarks[] = {": ", "- ", "-> ", "\xe2\x80\x94", "\xe2\x80\x93", "\xe2\x86\x92"};
  return std::any_of(std::begin(kMarks), std::end(kMarks), [rest](auto mark) { return rest.starts_with(mark); });
}

/// Whether `before` ends with a mark of quotation that closes in `after`, and what stands around both shows that the
/// message is a term or a string among others, not the value of a field or the text of an exception.
bool is_term(std::string_view before, std::string_view after, Words clause, bool has_class) {
  if (before.empty() || !is_quote_mark(before.back())) return false;
  const char mark = before.back();
  const std::size_t close = after.find(mark);
  if (close == std::string_view::npos) return false;
  std::string_view left = before.substr(0, before.find_last_not_of(mark) + 1);
  // Python's r"..." and f"...".
  if (left.size() > 1 && std::string_view("rbfu").find(left.back()) != std::string_view::npos &&
      !is_letter(left[left.size() - 2]))
    left.remove_suffix(1);
  const std::string_view right = after.substr(std::min(after.find_first_not_of(mark, close), after.size()));
  const bool is_exact = trimmed(after.substr(0, close), " .!").empty();
  const std::string_view code = without_blanks_at_end(left);
  const std::string_view line = code_of(left);
  if (line.empty() || trimmed(line, "*# \t").empty()) {
    // People begin their reports with the whole error in quotes: "`RuntimeError: X` on my card".
    const std::string_view rest = trimmed(right, " \t.!");
    return is_exact && (has_class ? explains(rest) : !rest.empty());
  }
  const bool has_blank = code.size() < left.size();
  const char last = code.back();
  if (last == '=' && has_blank) return is_exact;
  if (last == '(') {
    return !is_exception(code.substr(0, code.size() - 1));
  }
  if (last == ',' || last == '[' || last == '{') return is_exact && !has_class;
  if (has_blank && (is_letter(last) || last == ')')) return !has_any(clause, kEvents);
  return trimmed(right, " ").starts_with("in ") || trimmed(right, " ").starts_with("not in ");
}

/// An entry of a list or of a table that says what X is: "- X: lower the batch size", "| X | lower the batch size |".
bool is_entry(std::string_view before, std::string_view after) {
  const std::string_view mark = trimmed(before, " \t*_`");
  const std::string_view rest = after.substr(std::min(after.find_first_not_of("*_`. "), after.size()));
  const bool has_words = rest.find(' ', 2) != std::string_view::npos;
  if (mark == "|") return rest.starts_with("| ") && has_words && is_letter(rest[2]);
  const bool is_numbered = !mark.empty() && mark.find_first_not_of("0123456789.)") == std::string_view::npos &&
                           (mark.back() == '.' || mark.back() == ')');
  const bool is_bullet =
      mark == "-" || mark == "\xe2\x80\xa2" || is_numbered || (mark.empty() && trimmed(before, " \t") == "*");
  return (is_bullet && explains(rest) && has_words) || mark.ends_with("[ ]") || mark.ends_with("[x]");
}

/// What is said of it behind it: "X errors", "`X` usually means", "X?".
bool is_spoken_of(std::string_view after) {
  std::size_t at = 0;
  for (int word_count = 0; word_count < 3; ++word_count) {
    at = std::min(after.find_first_not_of(" \t\"'`*_", at), after.size());
    if (at < after.size() && after[at] == '?') return true;
    std::size_t end = at;
    while (end < after.size() && is_letter(after[end])) ++end;
    const std::string_view word = after.substr(at, end - at);
    if (word.empty()) return false;
    if (has(kGeneralAfter, word)) return true;
    if (!has(kNouns, word)) return false;
    at = end;
  }
  return false;
}

bool is_in_general(const Before& words) {
  if (has_any(words.sentence, kConditions)) return true;
  const Words clause = words.clause;
  if (clause.empty()) return false;
  const std::string_view last = clause.back();
  const std::string_view before_last = clause.size() > 1 ? clause[clause.size() - 2] : "";
  if (last == "when" || last == "upon" || last == "for" || (last == "on" && has_any(clause, kReactions))) return true;
  // "could not be loaded because X" denies something else.
  if (last == "because" || (last == "of" && before_last == "because") || (last == "to" && before_last == "due"))
    return has_any(clause, kModals) && !has_any(clause, kDenials);
  if (has_any(words.part, kDenials)) return true;
  return !has_any(clause, kEvents) && (has_any(clause, kModals) || has_any(clause, kGeneral));
}

/// The sentence behind the message ends as a question.
bool is_asked(std::string_view after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool ends = i + 1 == after.size() || after[i + 1] == ' ' || is_quote_mark(after[i + 1]);
    if (ends && (after[i] == '.' || after[i] == '!' || after[i] == '?')) return after[i] == '?';
  }
  return false;
}

/// The line above addresses the reader, and its sentence goes on behind the message: `after` begins in lower case.
bool goes_on(std::string_view above, std::string_view after) {
  above = trimmed(above);
  after = trimmed(after, " \t\r\n.\"'`");
  if (above.empty() || !is_letter(above.back()) || after.empty()) return false;
  if (!is_letter(after.front()) && after.front() != ',') return false;
  static constexpr std::string_view kReader[] = {"you", "your", "you're", "you'll", "you've"};
  return has_any(Before(above).sentence, kReader);
}

}  // namespace

bool is_quotation(std::string_view text, std::size_t begin, std::size_t end, std::size_t size_count) {
  if (size_count >= 2) return false;
  const std::size_t from = begin - std::min(begin, kBeforeBytes);
  const std::string all_before = plain(text.substr(from, begin - from));
  const std::string all_after = plain(text.substr(end, kAfterBytes));
  const std::string_view after = std::string_view(all_after).substr(0, all_after.find('\n'));
  const std::size_t line = all_before.rfind('\n') + 1;
  const std::string_view before = std::string_view(all_before).substr(line);
  const std::string_view before_class = before.substr(0, begin_with_classes(before));
  const Before words(before);
  const std::string message = plain(text.substr(begin, end - begin));
  if (is_in_code(before, message, after) || is_entry(before_class, after) || is_spoken_of(after) || is_asked(after) ||
      is_in_general(words))
    return true;
  if (is_term(before, after, words.clause, false) ||
      is_term(before_class, after, words.clause, before_class.size() < before.size()))
    return true;
  if (!trimmed(before_class, " \t>|`*\"'").empty() || line < 2) return false;
  const std::string_view above = std::string_view(all_before).substr(0, line - 1);
  return goes_on(above.substr(above.rfind('\n') + 1), text.substr(end, kAfterBytes));
}

}  // namespace vramtrack::explain
