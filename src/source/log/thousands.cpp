#include "source/log/thousands.hpp"

#include <algorithm>

#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_digit;
using logtext::trim;

/// A number with commas at the beginning of a quoted field.
struct GroupedNumber {
  std::size_t groups = 0;  ///< after commas; 0: there is no such number
  std::size_t length = 0;
};

GroupedNumber read_grouped(std::string_view text) {
  GroupedNumber out;
  while (out.length < text.size() && is_digit(text[out.length])) ++out.length;
  if (out.length < 1 || out.length > 3) return {};
  const auto is_group = [](std::string_view rest) {
    return rest.size() >= 4 && rest.front() == ',' && std::all_of(rest.begin() + 1, rest.begin() + 4, is_digit);
  };
  for (; is_group(text.substr(out.length)); out.length += 4) ++out.groups;
  const std::string_view rest = text.substr(out.length);
  return !rest.empty() && (is_digit(rest.front()) || rest.front() == ',') ? GroupedNumber{} : out;
}

/// Takes the next quoted field that begins and ends in `line`; `before` is what stands before its text. False: there is
/// none.
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

/// Whether the comma of a number with one group cannot be decimal: no GPU is said to use 3.233 MiB.
bool is_small_unit(std::string_view word) {
  const std::uint64_t bytes = logtext::unit_bytes(trim(word));
  return bytes != 0 && bytes < kBytesPerGiB;
}

/// Whether a title of the first line has such a unit, and none a larger one.
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

}  // namespace vramtrack
