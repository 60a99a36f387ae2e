// Splits delimiter-separated tables into records and fields (RFC 4180 and similar formats).
#include <algorithm>

#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

/// A record with quotes is at most this long; in a longer one, the quote is a plain character.
constexpr std::size_t kLongestRecord = 64 * kBytesPerKiB;

/// Position of the quote that closes the field with its text starting at `from`; npos if there is none. A doubled quote
/// is a quote within the field.
std::size_t closing_quote(std::string_view text, std::size_t from) {
  while (true) {
    const std::size_t at = text.find('"', from);
    if (at == std::string_view::npos || at + 1 >= text.size() || text[at + 1] != '"') return at;
    from = at + 2;
  }
}

}  // namespace

void split_fields(std::string_view line, char delimiter, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    std::size_t end = std::string_view::npos;
    const std::size_t close = !line.empty() && line.front() == '"' ? closing_quote(line, 1) : std::string_view::npos;
    if (close != std::string_view::npos) {
      end = line.find(delimiter, close);
      fields.push_back(line.substr(1, close - 1));
    } else {
      end = line.find(delimiter);
      fields.push_back(trim(line.substr(0, end)));
    }
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

void drop_surplus(std::vector<std::string_view>& fields, std::size_t count) {
  while (fields.size() > count && logtext::is_missing(fields.back())) fields.pop_back();
}

void split_row(std::string_view line, char delimiter, std::size_t count, std::vector<std::string_view>& fields) {
  split_fields(line, delimiter, fields);
  drop_surplus(fields, count);
}

bool ends_in_quotes(std::string_view line, char delimiter) {
  while (true) {
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    std::size_t from = 0;
    if (!line.empty() && line.front() == '"') {
      from = closing_quote(line, 1);
      if (from == std::string_view::npos) return true;
    }
    const std::size_t end = line.find(delimiter, from);
    if (end == std::string_view::npos) return false;
    line.remove_prefix(end + 1);
  }
}

std::string_view take_record(std::string_view& rest, char delimiter) {
  std::string_view after = rest;
  std::string_view record = logtext::take_line(after);
  if (record.find('"') != std::string_view::npos && ends_in_quotes(record, delimiter)) {
    std::string_view longer = after;
    auto quotes = std::count(record.begin(), record.end(), '"');
    while (!longer.empty()) {
      const std::string_view next = logtext::take_line(longer);
      const auto more = std::count(next.begin(), next.end(), '"');
      quotes += more;
      const auto size = static_cast<std::size_t>(next.data() + next.size() - rest.data());
      if (size > kLongestRecord) break;
      // A complete record has an even number of quotes: most lines need no scan of the record from its beginning.
      if (more == 0 || quotes % 2 != 0 || ends_in_quotes(rest.substr(0, size), delimiter)) continue;
      record = rest.substr(0, size);
      after = longer;
      break;
    }
  }
  rest = after;
  return record;
}

char find_delimiter(std::string_view line) {
  char best = '\0';
  std::ptrdiff_t most = 0;
  for (const char c : {',', ';', '\t'}) {
    const auto n = std::count(line.begin(), line.end(), c);
    if (n > most) {
      most = n;
      best = c;
    }
  }
  return best;
}

bool read_amount_pair(std::string_view text, std::uint64_t default_unit, std::uint64_t& used, std::uint64_t& total) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view second = trim(text.substr(slash + 1));
  logtext::Decimal number;
  if (!logtext::read_decimal(second, number)) return false;
  const std::uint64_t unit = logtext::unit_bytes(trim(second.substr(number.length)));
  return logtext::read_amount(second, default_unit, total) == logtext::Amount::read &&
         logtext::read_amount(trim(text.substr(0, slash)), unit != 0 ? unit : default_unit, used) ==
             logtext::Amount::read;
}

bool is_drawn(std::string_view line) {
  line = trim(line);
  if (line.find_first_not_of("-+|=: ") == std::string_view::npos) return line.find("--") != std::string_view::npos;
  if (line.starts_with('(')) line.remove_prefix(1);
  const std::string_view number = logtext::take_word(line);
  line = trim(line);
  return logtext::whole_number<std::uint64_t>(number).has_value() &&
         (line == "rows)" || line == "row)" || line.starts_with("rows in set"));
}

}  // namespace vramtrack
