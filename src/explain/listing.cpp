#include "explain/listing.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "explain/rows.hpp"
#include "explain/statement.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// The width of the mark of a list item, after its indentation: "- ", "* ", "12. "; 0: none.
std::size_t item_mark(std::string_view line) {
  const std::string_view words = line.substr(indent_of(line));
  for (const std::string_view mark : {"- ", "* ", "+ ", "\xe2\x80\xa2 ", "<li>"})
    if (words.starts_with(mark)) return mark.size();
  const std::size_t digits = std::min(words.find_first_not_of("0123456789"), words.size());
  const bool is_number = digits > 0 && digits < 3 && digits + 1 < words.size() && words[digits + 1] == ' ' &&
                         (words[digits] == '.' || words[digits] == ')');
  return is_number ? digits + 2 : 0;
}
/// An error: its class, a failed allocation, or a span of code.
bool is_error(std::string_view item) {
  const std::string words = lower(item);
  const std::string_view first = std::string_view(words).substr(0, words.find(' '));
  return first.ends_with("error:") || first.ends_with("exception:") || first.ends_with("error") ||
         item.starts_with('`') || has_statement(words);
}
/// Lines that only open or close a list: "<ul>".
bool is_tag(std::string_view line) {
  const std::string_view words = trimmed(line, kBlanks);
  return words.starts_with('<') && words.find('>') == words.size() - 1;
}

bool is_item(const Lines& lines) {
  const std::string_view own = lines.all[lines.own];
  if (item_mark(own) == 0) return false;
  const std::size_t indent = indent_of(own);
  bool has_other = false;
  const auto look = [&](std::string_view line) {
    if (is_blank(line) || indent_of(line) > indent || is_tag(line)) return true;  // the rest of an item
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
  return is_heading(lines, first - 1) || is_title;
}

/// `cell` without its figures and marks: two messages of one form differ in them alone.
std::string form_of(std::string_view cell) {
  std::string out = lower(cell);
  std::erase_if(out, [](char c) { return !is_ascii_letter(c); });
  return out;
}

/// `words` in lower case with blanks for what joins a key to its value: "\"exit_code\": 1".
std::string plain(std::string_view words) {
  std::string out = lower(words);
  for (char& c : out)
    if (c == '_' || c == '"' || c == '\'') c = ' ';
  return out;
}

/// Whether a cell beside the messages shows that the rows are what happened: a time, a level below an error, the status
/// of a program.
bool is_of_run(std::string_view title, std::string_view cell) {
  const std::string words = lower(trimmed(cell, " \t\r*_`\"'"));
  return has_time_or_place(words) || has_fact_of_run(plain(std::string(title) + ' ' + words)) ||
         is_any(words, "info|debug|trace|notice|ok|done|passed|succeeded|failed|killed|crashed");
}

/// Whether `cell` explains the message before it: words, and no figures.
bool explains(std::string_view cell) {
  return cell.find(' ') != std::string_view::npos && std::none_of(cell.begin(), cell.end(), is_digit);
}

/// Whether a column beside the messages tells the rows apart, as the codes of a list do.
bool has_keys(const Rows& rows) {
  for (std::size_t i = 0; i < rows.titles.size(); ++i) {
    std::set<std::string_view> keys;
    for (const auto& row : rows.all)
      if (i != rows.column && i < row.size() && !row[i].empty()) keys.insert(row[i]);
    if (keys.size() == rows.all.size()) return true;
  }
  return false;
}

bool is_row_of_list(const Rows& rows) {
  if (rows.all.size() < 2) return false;
  const auto& own = rows.all[rows.own];
  const std::string form = form_of(own[rows.column]);
  std::size_t errors = 0;
  for (const auto& row : rows.all) {
    for (std::size_t i = 0; i < row.size(); ++i)
      if (i != rows.column && is_of_run(i < rows.titles.size() ? rows.titles[i] : "", row[i])) return false;
    if (rows.column < row.size() && is_error(row[rows.column]) && form_of(row[rows.column]) != form) ++errors;
  }
  if (errors > 0 && 2 * errors + 1 >= rows.all.size() && has_keys(rows)) return true;
  return rows.column == 0 && own.size() > 1 && std::any_of(own.begin() + 1, own.end(), explains);
}

/// The numbers of a message.
std::set<std::string> numbers_of(std::string_view words) {
  std::set<std::string> out;
  for (std::size_t at = 0; at < words.size();) {
    std::size_t end = at;
    while (end < words.size() && (is_digit(words[end]) || (end > at && words[end] == '.'))) ++end;
    if (end > at) out.emplace(words.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return out;
}
/// Whether another string of the array reports memory that could not be allocated, with figures of its own: one run
/// reports its failure in several words, but with one size.
bool is_string_of_list(const Lines& lines) {
  const auto strings = strings_of(lines);
  if (strings.size() < 2) return false;
  for (const std::string_view line : lines.all)
    if (has_fact_of_run(plain(line)) || has_time_or_place(lower(line))) return false;
  const auto own = numbers_of(strings.front());
  const auto is_other = [&own](std::string_view string) {
    const auto numbers = numbers_of(string);
    return !numbers.empty() && has_statement(lower(string)) &&
           std::none_of(numbers.begin(), numbers.end(), [&own](const auto& number) { return own.count(number) > 0; });
  };
  return !own.empty() && std::any_of(strings.begin() + 1, strings.end(), is_other);
}

}  // namespace

bool is_listed(const Lines& lines) {
  const auto is_in_table = [&lines] {
    const auto rows = rows_of(lines);
    return rows && is_row_of_list(*rows);
  };
  return (is_item(lines) || is_in_table() || is_string_of_list(lines)) && !has_writer(lines);
}

}  // namespace vramtrack::explain
