#include "explain/rows.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

using Cells = std::vector<std::string_view>;

/// Rows to each side of the message's that decide.
constexpr std::size_t kNearRows = 6;

/// The cell of `cells` that holds the byte at `at`; npos: none.
std::size_t column_at(const Cells& cells, const char* at) {
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i].data() <= at && at < cells[i].data() + cells[i].size()) return i;
  return std::string_view::npos;
}
/// The first byte of the message.
const char* position_of(const Lines& lines) {
  return lines.all[lines.own].data() + lines.before.size();
}

/// The table of the rows, of which the first has the titles; nullopt: the message is in none of the others.
std::optional<Rows> table_of(std::vector<Cells> rows, const Lines& lines) {
  if (rows.size() < 2 || rows[0].size() < 2) return std::nullopt;
  Rows out{std::move(rows[0]), {}, rows.size(), 0};
  rows.erase(rows.begin());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (const std::size_t column = column_at(rows[i], position_of(lines)); column != std::string_view::npos) {
      out.own = i;
      out.column = column;
    }
  if (out.own >= rows.size()) return std::nullopt;
  const std::size_t first = out.own - std::min(out.own, kNearRows);
  const std::size_t end = std::min(rows.size(), out.own + kNearRows + 1);
  out.all.assign(std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(first)),
                 std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(end)));
  out.own -= first;
  return out;
}

/// The lines around the message for which `is_part` holds, without a gap: [first, end).
template <typename Part>
std::pair<std::size_t, std::size_t> run_of(const Lines& lines, Part is_part) {
  std::size_t first = lines.own, end = lines.last + 1;
  while (first > 0 && is_part(lines.all[first - 1])) --first;
  while (end < lines.all.size() && is_part(lines.all[end])) ++end;
  return {first, end};
}

/// A line that separates rows: "|---|---|", "+----+", "----  ----".
bool is_rule(std::string_view line) {
  const std::string_view words = trimmed(line, kBlanks);
  return words.size() > 2 && words.find_first_not_of("|+-=: ") == std::string_view::npos &&
         words.find_first_of("-=") != std::string_view::npos;
}

Cells split(std::string_view line, char mark) {
  Cells out;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(mark, at), line.size());
    out.push_back(trimmed(line.substr(at, end - at), kBlanks));
    at = end + 1;
  }
  return out;
}

std::optional<Rows> bar_rows(const Lines& lines) {
  const auto is_part = [](std::string_view line) { return line.find('|') != std::string_view::npos || is_rule(line); };
  if (lines.all[lines.own].find('|') == std::string_view::npos) return std::nullopt;
  const auto range = run_of(lines, is_part);
  std::vector<Cells> rows;
  for (std::size_t at = range.first; at < range.second; ++at) {
    if (is_rule(lines.all[at])) continue;
    // Titles stand above a rule.
    if (rows.empty() && (at + 1 >= range.second || !is_rule(lines.all[at + 1]))) return std::nullopt;
    std::string_view line = trimmed(lines.all[at], kBlanks);
    if (line.starts_with('|')) line.remove_prefix(1);
    if (line.ends_with('|')) line.remove_suffix(1);
    rows.push_back(split(line, '|'));
  }
  return table_of(std::move(rows), lines);
}

/// Fields in the manner of CSV: a mark inside quotes separates nothing.
Cells fields_of(std::string_view line, char mark) {
  Cells out;
  bool is_quoted = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    if (at < line.size() && line[at] == '"') is_quoted = !is_quoted;
    if (at < line.size() && (line[at] != mark || is_quoted)) continue;
    out.push_back(trimmed(line.substr(begin, at - begin), " \t\r\""));
    begin = at + 1;
  }
  return out;
}
/// Of a column: a few words, and none of a message.
bool is_title(std::string_view cell) {
  constexpr std::size_t kLongest = 24;
  return !cell.empty() && cell.size() <= kLongest && is_ascii_letter(cell.front()) &&
         std::count(cell.begin(), cell.end(), ' ') < 3 && cell.find_first_of("{}[]\":=") == std::string_view::npos;
}
std::optional<Rows> csv_rows(const Lines& lines) {
  for (const char mark : {',', '\t', ';'}) {
    const std::size_t count = fields_of(lines.all[lines.own], mark).size();
    if (count < 2) continue;
    const auto is_part = [&](std::string_view line) { return fields_of(line, mark).size() == count; };
    const auto range = run_of(lines, is_part);
    const Cells titles = fields_of(lines.all[range.first], mark);
    if (range.first == lines.own || !std::all_of(titles.begin(), titles.end(), is_title)) continue;
    std::vector<Cells> rows;
    for (std::size_t at = range.first; at < range.second; ++at) rows.push_back(fields_of(lines.all[at], mark));
    return table_of(std::move(rows), lines);
  }
  return std::nullopt;
}

/// "Code  Message" above "----  -------": the dashes give the columns.
std::optional<Rows> aligned_rows(const Lines& lines) {
  const auto is_part = [](std::string_view line) { return !is_blank(line) && !is_rule(line); };
  const auto range = run_of(lines, is_part);
  if (range.first < 2 || !is_rule(lines.all[range.first - 1])) return std::nullopt;
  const std::string_view rule = lines.all[range.first - 1];
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < rule.size(); ++i)
    if (rule[i] != ' ' && (i == 0 || rule[i - 1] == ' ')) begins.push_back(i);
  const auto cut = [&begins](std::string_view line) {
    Cells out;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const std::size_t begin = std::min(begins[i], line.size());
      const std::size_t end = i + 1 < begins.size() ? std::min(begins[i + 1], line.size()) : line.size();
      out.push_back(trimmed(line.substr(begin, end - begin), kBlanks));
    }
    return out;
  };
  std::vector<Cells> rows{cut(lines.all[range.first - 2])};
  for (std::size_t at = range.first; at < range.second; ++at) rows.push_back(cut(lines.all[at]));
  return begins.size() < 2 ? std::nullopt : table_of(std::move(rows), lines);
}

/// "<tr><td>E12</td><td>X</td></tr>", over however many lines.
std::optional<Rows> html_rows(const Lines& lines) {
  const char* const front = lines.all.front().data();
  const std::string_view text(front,
                              static_cast<std::size_t>(lines.all.back().data() + lines.all.back().size() - front));
  const auto at = static_cast<std::size_t>(position_of(lines) - front);
  const std::size_t begin = text.rfind("<table", at);
  if (begin == std::string_view::npos || text.substr(begin, at - begin).find("</table") != std::string_view::npos)
    return std::nullopt;
  const std::string_view table = text.substr(begin, text.find("</table", at) - begin);
  std::vector<Cells> rows;
  for (std::size_t row = table.find("<tr"); row != std::string_view::npos;) {
    const std::size_t next = table.find("<tr", row + 1);
    const std::string_view words = table.substr(row, next - row);
    Cells cells;
    for (std::size_t cell = 0; (cell = words.find("<t", cell)) != std::string_view::npos;) {
      const bool is_row = words.substr(cell).starts_with("<tr");
      const std::size_t open = std::min(words.find('>', cell), words.size() - 1) + 1;
      const std::size_t close = std::min(words.find("</t", open), words.size());
      if (!is_row) cells.push_back(trimmed(words.substr(open, close - open), kBlanks));
      cell = is_row ? open : close;
    }
    if (!cells.empty()) rows.push_back(std::move(cells));
    row = next;
  }
  return table_of(std::move(rows), lines);
}

/// ".. list-table::" of reStructuredText: "* - E12" begins a row, "  - X" is its next cell.
std::optional<Rows> list_table_rows(const Lines& lines) {
  std::size_t at = lines.own;
  const auto begins = [&lines](std::size_t i) { return trimmed(lines.all[i], kBlanks).starts_with(".. list-table::"); };
  while (at > 0 && !begins(at) && (is_blank(lines.all[at]) || indent_of(lines.all[at]) > 0)) --at;
  if (!begins(at)) return std::nullopt;
  std::vector<Cells> rows;
  for (++at; at < lines.all.size() && (is_blank(lines.all[at]) || indent_of(lines.all[at]) > 0); ++at) {
    std::string_view line = trimmed(lines.all[at], kBlanks);
    if (line.starts_with("* - ")) {
      rows.emplace_back();
      line.remove_prefix(2);
    }
    if (!rows.empty() && line.starts_with("- ")) rows.back().push_back(line.substr(2));
  }
  return table_of(std::move(rows), lines);
}

/// The values of an object of JSON on one line, and its keys.
bool read_object(std::string_view line, Cells& keys, Cells& values) {
  line = trimmed(line, " \t\r,");
  if (line.size() < 2 || line.front() != '{' || line.back() != '}') return false;
  for (const std::string_view member : fields_of(line.substr(1, line.size() - 2), ',')) {
    const std::size_t colon = member.find("\":");
    if (colon == std::string_view::npos) return false;
    keys.push_back(trimmed(member.substr(0, colon), " \""));
    values.push_back(trimmed(member.substr(colon + 2), " \""));
  }
  return !keys.empty();
}
std::optional<Rows> object_rows(const Lines& lines) {
  Cells titles, ignored;
  if (!read_object(lines.all[lines.own], titles, ignored)) return std::nullopt;
  const auto is_part = [&titles](std::string_view line) {
    Cells keys, values;
    return read_object(line, keys, values) && keys == titles;
  };
  const auto range = run_of(lines, is_part);
  std::vector<Cells> rows{titles};
  for (std::size_t at = range.first; at < range.second; ++at) {
    Cells keys;
    read_object(lines.all[at], keys, rows.emplace_back());
  }
  return table_of(std::move(rows), lines);
}

/// The string that a line of an array of JSON or YAML has; empty: none, or a line of output, which ends with a line
/// feed. `key`: without its number; empty: none.
std::string_view string_on(std::string_view line, std::string& key) {
  std::string_view words = trimmed(line, " \t\r,");
  const bool is_item = words.starts_with("- ");
  if (is_item) words = trimmed(words.substr(2), kBlanks);
  if (words.size() < 3 || (words.front() != '"' && words.front() != '\'')) return {};
  const char quote = words.front();
  const std::size_t colon = words.find(std::string{quote} + ": ");
  if (colon != std::string_view::npos && colon + 4 < words.size() && words[colon + 3] == quote) {
    key = words.substr(1, colon - 1);
    std::erase_if(key, is_digit);
    if (key.size() == colon - 1) return {};
    words.remove_prefix(colon + 3);
  }
  if (words.back() != quote || words.find("\\n") != std::string_view::npos ||
      words.find("\\u001b") != std::string_view::npos)
    return {};
  return words.substr(1, words.size() - 2);
}

}  // namespace

std::optional<Rows> rows_of(const Lines& lines) {
  for (const auto read : {bar_rows, object_rows, csv_rows, aligned_rows, list_table_rows, html_rows})
    if (auto rows = read(lines)) return rows;
  return std::nullopt;
}

std::vector<std::string_view> strings_of(const Lines& lines) {
  std::string key;
  std::vector<std::string_view> out{string_on(lines.all[lines.own], key)};
  if (out.front().empty()) return {};
  const auto is_part = [&key](std::string_view line) {
    std::string other;
    return !string_on(line, other).empty() && other == key;
  };
  const auto range = run_of(lines, is_part);
  for (std::size_t at = range.first; at < range.second; ++at)
    if (at < lines.own || at > lines.last) out.push_back(string_on(lines.all[at], key));
  return out;
}

}  // namespace vramtrack::explain
