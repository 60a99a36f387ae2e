#include "source/log/cells.hpp"

#include <algorithm>
#include <iterator>

#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/grouping.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_digit;
using logtext::trim;

}  // namespace

std::vector<std::string_view> parts_of_list(std::string_view text) {
  constexpr std::size_t kLongest = 1024;
  text = trim(text);
  if (text.size() < 3 || text.size() > kLongest) return {};
  const bool in_brackets = text.front() == '[' && text.back() == ']';
  if (in_brackets) text = trim(text.substr(1, text.size() - 2));
  const auto is_amount = [](std::string_view part) {
    std::uint64_t bytes = 0;
    return logtext::read_amount(part, 1, bytes) == logtext::Amount::read;
  };
  if (in_brackets && is_amount(text)) return {text};
  // Commas and spaces may also be part of a number, so each separates only within brackets, or both together.
  for (const std::string_view separator : {";", "|", ", ", ",", " "}) {
    if (text.find(separator) == std::string_view::npos || (separator == "," && !in_brackets) ||
        (separator == " " && !in_brackets))
      continue;
    std::vector<std::string_view> parts;
    std::string_view rest = text;
    for (bool more = true; more;) {
      const std::size_t end = rest.find(separator);
      parts.push_back(trim(rest.substr(0, end)));
      more = end != std::string_view::npos;
      if (more) rest.remove_prefix(end + separator.size());
    }
    if (std::all_of(parts.begin(), parts.end(), is_amount)) return parts;
  }
  return {};
}

namespace {

/// A number with commas at the beginning of a quoted field.
struct GroupedNumber {
  std::size_t groups = 0;  ///< after commas; 0: no such number
  std::size_t length = 0;
};

GroupedNumber read_grouped(std::string_view text, char separator = ',') {
  GroupedNumber out;
  while (out.length < text.size() && is_digit(text[out.length])) ++out.length;
  if (out.length < 1 || out.length > 3) return {};
  const auto is_group = [separator](std::string_view rest) {
    return rest.size() >= 4 && rest.front() == separator && std::all_of(rest.begin() + 1, rest.begin() + 4, is_digit);
  };
  for (; is_group(text.substr(out.length)); out.length += 4) ++out.groups;
  const std::string_view rest = text.substr(out.length);
  return !rest.empty() && (is_digit(rest.front()) || rest.front() == separator) ? GroupedNumber{} : out;
}

/// Takes the next quoted field that begins and ends in `line`; `before` is the text before the field's own. False:
/// there is no such field.
bool take_quoted(std::string_view& line, std::string_view& before, std::string_view& field) {
  const std::string_view whole = line;
  for (std::size_t at = line.find('"'); at != std::string_view::npos; at = whole.find('"', at + 1)) {
    const std::string_view left = trim(whole.substr(0, at));
    if (!left.empty() && left.back() != ',') continue;
    const std::size_t end = whole.find('"', at + 1);
    if (end == std::string_view::npos) return false;
    before = whole.substr(0, at + 1);
    field = whole.substr(at + 1, end - at - 1);
    line = whole.substr(end);
    return true;
  }
  return false;
}

/// Whether the comma of a number with one group cannot be decimal: no GPU is reported to use 3.233 MiB.
bool is_small_unit(std::string_view word) {
  const std::uint64_t bytes = logtext::unit_bytes(trim(word));
  return bytes != 0 && bytes < kBytesPerGiB;
}

/// Whether a title of the first line has such a unit and no title has a larger one.
bool titles_have_small_unit(std::string_view head) {
  std::vector<std::string_view> titles;
  split_fields(logtext::take_line(head), ',', titles);
  bool has = false;
  for (const std::string_view title : titles) {
    const std::uint64_t bytes = classify_column(title).unit_bytes;
    if (bytes >= kBytesPerGiB) return false;
    has |= bytes != 0;
  }
  return has;
}

/// A column of amounts, with the unit from its title.
struct AmountColumn {
  int column = -1;
  std::uint64_t unit = 0;
  bool is_total = false;
};

std::vector<AmountColumn> amount_columns(const ColumnPlan& plan) {
  std::vector<AmountColumn> out{{plan.used, plan.used_unit, false},
                                {plan.free, plan.free_unit, false},
                                {plan.total, plan.total_unit != 0 ? plan.total_unit : plan.used_unit, true}};
  for (const ColumnPlan::Wide& wide : plan.wide) {
    out.push_back({wide.used, plan.used_unit, false});
    out.push_back({wide.total, plan.total_unit, true});
  }
  std::erase_if(out, [](const AmountColumn& c) { return c.column < 0; });
  std::sort(out.begin(), out.end(), [](const AmountColumn& a, const AmountColumn& b) { return a.column < b.column; });
  return out;
}

/// "8.123" of a cell such as " 8.123 MB".
std::string_view digits_of(std::string_view cell) {
  cell = trim(cell);
  const auto end = std::find_if(cell.begin(), cell.end(), [](char c) { return !is_digit(c) && c != '.' && c != ','; });
  return cell.substr(0, static_cast<std::size_t>(end - cell.begin()));
}

}  // namespace

bool has_thousands(std::string_view head) {
  const bool small_titles = titles_have_small_unit(head);
  bool found = false;
  std::string_view before;
  std::string_view field;
  while (!head.empty()) {
    std::string_view line = logtext::take_line(head);
    while (take_quoted(line, before, field)) {
      if (field.empty() || !is_digit(field.front()) || field.find(',') == std::string_view::npos) continue;
      const GroupedNumber number = read_grouped(field);
      if (number.groups == 0) return false;
      const std::string_view unit = field.substr(number.length);
      found |= number.groups > 1 || is_small_unit(unit) || (trim(unit).empty() && small_titles);
    }
  }
  return found;
}

std::string without_thousands(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::string_view before;
  std::string_view field;
  while (!text.empty()) {
    const bool ends = text.find('\n') != std::string_view::npos;
    std::string_view line = logtext::take_line(text);
    while (take_quoted(line, before, field)) {
      out += before;
      const GroupedNumber number = read_grouped(field);
      for (std::size_t i = 0; i < field.size(); ++i)
        if (i >= number.length || field[i] != ',') out += field[i];
    }
    out += line;
    if (ends) out += '\n';
  }
  return out;
}

std::vector<int> dotted_columns(std::string_view head, const ColumnPlan& plan) {
  if (plan.delimiter == ',' || plan.percent) return {};
  const std::vector<AmountColumn> columns = amount_columns(plan);
  const std::vector<std::string_view> titles = titles_of(plan);
  std::vector<WrittenAmount> amounts;
  std::vector<std::string_view> fields;
  while (!head.empty()) {
    split_fields(logtext::take_line(head), plan.delimiter, fields);
    if (fields.size() != plan.count) continue;
    for (const AmountColumn& c : columns) {
      const auto column = static_cast<std::size_t>(c.column);
      const std::string_view digits = digits_of(fields[column]);
      if (digits.empty() || !is_digit(digits.front())) continue;
      const std::string_view title = column < titles.size() ? titles[column] : std::string_view();
      amounts.push_back({digits, c.unit, c.is_total, is_german(title), std::string(title)});
    }
  }
  if (choose_grouping(amounts, {}).grouping != Grouping::by_dot) return {};
  std::vector<int> out;
  for (const AmountColumn& c : columns) out.push_back(c.column);
  return out;
}

std::string without_dots(std::string_view text, char delimiter, const std::vector<int>& columns) {
  std::string out;
  out.reserve(text.size());
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    const bool ends = text.find('\n') != std::string_view::npos;
    const std::string_view line = logtext::take_line(text);
    split_fields(line, delimiter, fields);
    const char* copied = line.data();
    for (const int column : columns) {
      if (static_cast<std::size_t>(column) >= fields.size()) continue;
      const std::string_view number = digits_of(fields[static_cast<std::size_t>(column)]);
      const GroupedNumber grouped = read_grouped(number, '.');
      if (grouped.groups == 0 || number.data() < copied) continue;
      out.append(copied, number.data());
      std::copy_if(number.begin(), number.begin() + static_cast<std::ptrdiff_t>(grouped.length),
                   std::back_inserter(out), is_digit);
      copied = number.data() + grouped.length;
    }
    out.append(copied, line.data() + line.size());
    if (ends) out += '\n';
  }
  return out;
}

}  // namespace vramtrack
