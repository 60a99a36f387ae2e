#include "source/log/grouping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_digit;

/// No GPU has more (AMD MI355X and NVIDIA B300 have 288 GiB), and none that runs such programs has less in total.
constexpr double kMostBytes = 300 * kGiB;
constexpr double kLeastTotalBytes = 256 * kMiB;

constexpr std::size_t kDot = 0;
constexpr std::size_t kComma = 1;
constexpr std::array<char, 2> kSeparators = {'.', ','};

Grouping other(Grouping g) {
  return g == Grouping::by_comma ? Grouping::by_dot : Grouping::by_comma;
}

/// The grouping of which `separator` begins the fraction.
Grouping with_fraction(std::size_t separator) {
  return separator == kDot ? Grouping::by_comma : Grouping::by_dot;
}

/// The digits between separators: "1.234,5" is 1, 3, 1.
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

/// What the numbers of a line show about grouping: "loss 0.25", "3,5 s". Versions and dates show nothing.
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
  std::map<std::string, double> most_number;  // of the open ones, by label
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
