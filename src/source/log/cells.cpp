#include "source/log/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/columns.hpp"
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
  // Commas and spaces may also be part of a number, so each is a separator only within brackets, or both together.
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

/// A number with commas at the start of a quoted field.
struct GroupedNumber {
  std::size_t groups = 0;  ///< groups of digits after commas; 0: no such number
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

/// Takes the next quoted field that begins and ends in `line`; `before` is the text before it. Returns false if there
/// is no such field.
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

/// Whether the comma in a number with one group cannot be decimal: no GPU is reported to use 3.233 MiB.
bool is_small_unit(std::string_view word) {
  const std::uint64_t bytes = logtext::unit_bytes(trim(word));
  return bytes != 0 && bytes < kBytesPerGiB;
}

/// Whether a title in the first line has such a unit and no title has a larger one.
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

namespace {

/// No GPU has more (AMD MI355X and NVIDIA B300 have 288 GiB), and none that runs such programs has a smaller total.
constexpr double kMostBytes = 300 * kGiB;
constexpr double kLeastTotalBytes = 256 * kMiB;

constexpr std::size_t kDot = 0;
constexpr std::size_t kComma = 1;
constexpr std::array<char, 2> kSeparators = {'.', ','};

Grouping other(Grouping g) {
  return g == Grouping::by_comma ? Grouping::by_dot : Grouping::by_comma;
}

/// The grouping in which `separator` starts the fraction.
Grouping with_fraction(std::size_t separator) {
  return separator == kDot ? Grouping::by_comma : Grouping::by_dot;
}

/// The digits between separators: "1.234,5" has 1, 3 and 1.
struct Shape {
  std::array<std::size_t, 2> counts{};  ///< of separators
  std::size_t first = 0;                ///< digits before the first separator
  std::size_t last = 0;                 ///< digits after the last one
  bool threes = true;                   ///< three digits between every two separators
  std::size_t last_separator = kDot;

  explicit Shape(std::string_view digits) {
    std::size_t n = 0;
    std::size_t seen = 0;
    for (const char c : digits) {
      if (is_digit(c)) {
        ++n;
        continue;
      }
      last_separator = c == ',' ? kComma : kDot;
      ++counts[last_separator];
      (seen++ == 0 ? first : last) = n;
      if (seen > 1) threes &= last == 3;
      n = 0;
    }
    (seen == 0 ? first : last) = n;
  }
};

}  // namespace

std::optional<Grouping> shown_grouping(std::string_view digits, std::uint64_t unit_bytes) {
  const Shape shape(digits);
  const std::size_t all = shape.counts[kDot] + shape.counts[kComma];
  if (all == 0 || shape.first == 0) return std::nullopt;
  const std::size_t last = shape.last_separator;
  const bool are_groups = shape.first <= 3 && shape.threes && shape.last == 3;
  if (shape.counts[kDot] > 0 && shape.counts[kComma] > 0)
    return shape.counts[last] == 1 && shape.first <= 3 && shape.threes ? std::optional(with_fraction(last))
                                                                       : std::nullopt;
  if (all > 1) return are_groups ? std::optional(other(with_fraction(last))) : std::nullopt;
  const bool is_open = are_groups && digits.front() != '0' && unit_bytes < kBytesPerGiB;
  return is_open ? std::nullopt : std::optional(with_fraction(last));
}

bool is_open_number(std::string_view digits, std::uint64_t unit_bytes) {
  const Shape shape(digits);
  return shape.counts[kDot] + shape.counts[kComma] == 1 && shape.first > 0 && !shown_grouping(digits, unit_bytes);
}

double read_number(std::string_view digits, std::uint64_t unit_bytes, Grouping open) {
  const Grouping grouping = shown_grouping(digits, unit_bytes).value_or(open);
  const char group = kSeparators[grouping == Grouping::by_comma ? kComma : kDot];
  std::string plain;
  for (const char c : digits)
    if (c != group) plain += is_digit(c) ? c : '.';
  logtext::Decimal out;
  return logtext::read_decimal(plain, out) && out.length == plain.size() ? out.value() : -1;
}

namespace {

struct Votes {
  std::size_t by_comma = 0;
  std::size_t by_dot = 0;

  void add(std::optional<Grouping> shown) {
    if (shown) ++(*shown == Grouping::by_comma ? by_comma : by_dot);
  }
  [[nodiscard]] std::optional<Grouping> winner() const {
    if (by_comma == by_dot) return std::nullopt;
    return by_comma > by_dot ? Grouping::by_comma : Grouping::by_dot;
  }
};

/// Counts what a line's numbers show about grouping: "loss 0.25", "3,5 s". Versions and dates show nothing.
void vote(std::string_view line, Votes& votes) {
  for (std::size_t i = 0; i < line.size();) {
    if (!is_digit(line[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < line.size() &&
           (is_digit(line[i]) || ((line[i] == '.' || line[i] == ',') && i + 1 < line.size() && is_digit(line[i + 1]))))
      ++i;
    const char before = begin > 0 ? line[begin - 1] : ' ';
    const char after = i < line.size() ? line[i] : ' ';
    const std::string_view digits = line.substr(begin, i - begin);
    if (logtext::is_ascii_letter(before) || before == ':' || after == ':' || Shape(digits).first > 6) continue;
    const Shape shape(digits);
    if (shape.counts[kDot] + shape.counts[kComma] == 1) votes.add(shown_grouping(digits, 0));
  }
}

}  // namespace

std::string unknown_grouping(std::string_view example, std::uint64_t unit_bytes) {
  const bool mega = unit_bytes == 0 || unit_bytes >= kBytesPerMiB;
  return fmt::format(
      "the unit of the used memory is unknown: nothing shows whether '{}' separates thousands or a fraction; growth "
      "and "
      "verdict are in the file's own unit; give {} {} if it separates thousands, or {} if a fraction",
      example, name_of(Option::unit), mega ? "GB" : "MB", mega ? "MB" : "KiB");
}

GroupingChoice choose_grouping(std::span<const WrittenAmount> amounts, std::span<const std::string_view> lines) {
  GroupingChoice out;
  Votes shown;
  std::size_t german = 0;
  std::size_t open = 0;
  std::array<std::size_t, 2> open_by{};
  std::map<std::string, double> most_number;  // largest of the ambiguous numbers, by label
  for (const WrittenAmount& a : amounts) {
    shown.add(shown_grouping(a.digits, a.unit_bytes));
    if (!is_open_number(a.digits, a.unit_bytes)) continue;
    if (open++ == 0) out.example = a.digits;
    ++open_by[Shape(a.digits).last_separator];
    german += a.is_german ? 1U : 0U;
    double& most = most_number[a.label];
    most = std::max(most, read_number(a.digits, a.unit_bytes, with_fraction(Shape(a.digits).last_separator)));
  }
  if (open == 0) return out;
  const std::size_t separator = open_by[kDot] >= open_by[kComma] ? kDot : kComma;
  const Grouping fraction = with_fraction(separator);
  const Grouping thousands = other(fraction);
  // A program that prints "4.000" for 4 also prints "3.950", not "950".
  for (const WrittenAmount& a : amounts)
    if (const auto it = most_number.find(a.label); it != most_number.end() && a.digits.size() <= 3 && a.digits != "0" &&
                                                   std::all_of(a.digits.begin(), a.digits.end(), is_digit))
      shown.add(thousands);
  double most_total_bytes = 0;
  double most_thousands_bytes = 0;
  for (const WrittenAmount& a : amounts) {
    if (!is_open_number(a.digits, a.unit_bytes)) continue;
    const double unit = a.unit_bytes != 0 ? static_cast<double>(a.unit_bytes) : kMiB;
    if (a.is_total) most_total_bytes = std::max(most_total_bytes, read_number(a.digits, 0, fraction) * unit);
    most_thousands_bytes = std::max(most_thousands_bytes, read_number(a.digits, 0, thousands) * unit);
  }
  Votes others;
  for (const std::string_view line : lines) vote(line, others);
  const bool are_german = german * 2 > open;
  if (const auto winner = shown.winner())
    out.grouping = *winner;
  else if (most_thousands_bytes > kMostBytes)
    out.grouping = fraction;
  else if (most_total_bytes > 0 && most_total_bytes < kLeastTotalBytes)
    out.grouping = thousands;
  else if (are_german && separator == kDot)
    out.grouping = Grouping::by_dot;
  else if (const auto by_others = others.winner())
    out.grouping = *by_others;
  else if (separator == kDot || are_german)
    out.is_unknown = true;
  if (out.is_unknown) out.grouping = fraction;
  return out;
}

}  // namespace vramtrack
