#include "source/log/line_prefix.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/pci_address.hpp"
#include "source/log/line_start.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/owners.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

constexpr std::size_t kLooked = 400;
constexpr std::size_t kFewest = 5;
/// A prefix is at most this long.
constexpr std::size_t kLongest = 100;
/// The characters it ends with. A bar or a mark alone may be the frame of a screen, but not before nearly all lines.
constexpr std::string_view kEnds = "|>]:#";
/// The text that containerd and CRI-O write after the time: the stream, and whether the line is complete.
constexpr std::string_view kStreams[] = {"stdout F ", "stderr F ", "stdout P ", "stderr P "};

/// The longest possible prefix of `line`: it ends in punctuation and a space.
std::string_view candidate(std::string_view line) {
  for (std::size_t i = 0; i + 1 < std::min(line.size(), kLongest); ++i)
    if (kEnds.find(line[i]) != std::string_view::npos && (line[i + 1] == ' ' || line[i + 1] == '\t'))
      return line.substr(0, i + 2);
  // ">" before an empty line, after its space was trimmed.
  return line.size() == 1 && kEnds.find(line.front()) != std::string_view::npos ? line : std::string_view{};
}

/// "Nov 20 ", which has no year.
bool is_day_of_syslog(std::string_view text) {
  const std::string_view month = logtext::take_word(text);
  const std::string_view day = logtext::take_word(text);
  constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
  if (month.size() != 3 || !trim(text).empty() || day.empty() || day.size() > 2) return false;
  return kMonths.find(logtext::lower(month)) % 3 == 0 && std::all_of(day.begin(), day.end(), logtext::is_digit);
}

/// The first lines that are not empty.
std::vector<std::string_view> first_lines(std::string_view head) {
  std::vector<std::string_view> lines;
  while (!head.empty() && lines.size() < kLooked)
    if (const std::string_view line = logtext::take_line(head); !trim(line).empty()) lines.push_back(line);
  return lines;
}

}  // namespace

std::optional<std::string_view> LinePrefix::without(const Part& part, std::string_view line) {
  if (!part.is_time) {
    if (line.starts_with(part.text)) return line.substr(part.text.size());
    if (trim(line) == trim(part.text)) return std::string_view{};
    return std::nullopt;
  }
  const std::size_t open = line.starts_with('[') ? 1 : 0;
  const std::string_view stamp = find_stamp(line.substr(0, kLongest));
  if (stamp.empty()) return std::nullopt;
  const auto begin = static_cast<std::size_t>(stamp.data() - line.data());
  if (begin != open && !is_day_of_syslog(line.substr(0, begin))) return std::nullopt;
  std::string_view rest = line.substr(begin + stamp.size());
  if (begin != open && rest.starts_with(',')) rest.remove_prefix(1);
  if (open > 0 && rest.starts_with(']')) rest.remove_prefix(1);
  if (rest.starts_with(' ') || rest.starts_with('\t')) rest.remove_prefix(1);
  for (const std::string_view stream : kStreams) {
    if (rest.starts_with(stream)) return rest.substr(stream.size());
    if (rest == trim(stream)) return std::string_view{};
  }
  return rest;
}

/// The part at the start of nearly all of `lines`: a time, or a text.
std::optional<LinePrefix::Part> LinePrefix::find_part(const std::vector<std::string_view>& lines) {
  const auto fits = [&](const Part& part) {
    const auto n = std::count_if(lines.begin(), lines.end(),
                                 [&](std::string_view line) { return without(part, line).has_value(); });
    return static_cast<std::size_t>(n) >= kFewest && static_cast<std::size_t>(n) * 10 >= lines.size() * 9;
  };
  Part part{true, {}};
  if (fits(part)) return part;
  for (std::size_t i = 0; i < std::min(lines.size(), kFewest); ++i) {
    part = {false, std::string(candidate(lines[i]))};
    if (!part.text.empty() && fits(part)) return part;
  }
  return std::nullopt;
}

std::optional<LinePrefix> LinePrefix::find_time(std::string_view head) {
  const std::vector<std::string_view> lines = first_lines(head);
  if (lines.empty() || !without({true, {}}, lines.front())) return std::nullopt;
  const auto part = find_part(lines);
  if (!part || !part->is_time) return std::nullopt;
  LinePrefix out;
  out.parts_.push_back(*part);
  out.example_ = lines.front().substr(0, lines.front().size() - out.strip(lines.front()).size());
  return out;
}

std::optional<LinePrefix> LinePrefix::find(std::string_view head) {
  constexpr std::size_t kMostParts = 3;  // "pod-0 | ", a time, "> "
  std::vector<std::string_view> lines = first_lines(head);
  LinePrefix out;
  const std::vector<std::string_view> whole = lines;
  while (out.parts_.size() < kMostParts) {
    const auto part = find_part(lines);
    if (!part) break;
    out.parts_.push_back(*part);
    std::vector<std::string_view> rest;
    for (const std::string_view line : lines)
      if (const auto its = without(*part, line); its && !trim(*its).empty()) rest.push_back(*its);
    lines = std::move(rest);
  }
  if (out.parts_.empty() || lines.empty()) return std::nullopt;
  for (const std::string_view line : whole)
    if (const std::string_view rest = out.strip(line); out.example_.empty() && rest.size() < line.size())
      out.example_ = line.substr(0, line.size() - rest.size());
  return out;
}

bool LinePrefix::has_time() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.is_time; });
}

std::string_view LinePrefix::strip(std::string_view line) const {
  std::string_view rest = line;
  std::string_view time;
  for (const Part& part : parts_) {
    const auto its = without(part, rest);
    if (!its) return line;
    if (part.is_time) time = find_stamp(rest);
    rest = *its;
  }
  return keeps_times_ && trim(rest).empty() ? time : rest;
}

std::string LinePrefix::strip_lines(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view rest = strip(line);
    if (makes_column_ && rest.size() < line.size() && !rest.empty()) {
      out += find_stamp(line.substr(0, kLongest));
      out += ", ";
    }
    out += rest;
    if (end != std::string_view::npos) out += '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;

constexpr std::size_t kLongestValue = 60;

bool is_of_name(char c) {
  return is_ascii_letter(c) || is_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// The value after a key and its separator: a word, or quoted text.
std::string_view value_at(std::string_view line, std::size_t at) {
  if (at < line.size() && (line[at] == '"' || line[at] == '\'')) {
    const std::size_t close = line.find(line[at], at + 1);
    return close == std::string_view::npos ? std::string_view{} : line.substr(at + 1, close - at - 1);
  }
  std::size_t end = at;
  while (end < line.size() && (is_of_name(line[end]) || std::string_view(".-/:@").find(line[end]) != line.npos)) ++end;
  while (end > at && std::string_view(".-/:").find(line[end - 1]) != line.npos) --end;
  return line.substr(at, end - at);
}

/// A number with a fraction or a unit, as in "Peak 73.82M": a measurement, not a writer.
bool has_amount(std::string_view text) {
  const auto goes_on = [&](std::size_t at) { return at < text.size() && (is_of_name(text[at]) || text[at] == '.'); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    logtext::Decimal number;
    if (!is_digit(text[i]) || (i > 0 && goes_on(i - 1)) || !logtext::read_decimal(text.substr(i), number)) continue;
    const std::size_t end = i + number.length;
    const std::size_t unit = end < text.size() && text[end] == ' ' ? end + 1 : end;
    std::size_t letters = unit;
    while (letters < text.size() && is_ascii_letter(text[letters])) ++letters;
    if (goes_on(letters)) continue;
    if (number.has_fraction || written_unit(text.substr(unit, letters - unit)) != 0) return true;
  }
  return false;
}

/// The value of a field is a name or an address, never an amount.
bool is_value(std::string_view value) {
  return !value.empty() && value.size() <= kLongestValue && (!has_amount(value) || !pci_address_of(value).empty());
}

/// A field that has no name yet.
struct CutField {
  char sign = '=';       ///< between key and value: '=' (also for ':'), ' ', '#' within a name; '[': no key
  std::string_view key;  ///< in the line, without the digits of a name
  std::string_view value;
};

/// The value if `word` at `at` is a key followed by spaces and a value with a digit: "slot 3".
std::string_view value_behind_spaces(std::string_view line, std::string_view word, std::size_t at) {
  std::size_t from = at;
  while (from < line.size() && line[from] == ' ') ++from;
  if (from == at || !is_ascii_letter(word.front())) return {};
  const std::string_view value = value_at(line, from);
  if (value.find(':') != std::string_view::npos) return pci_address_of(value).empty() ? std::string_view{} : value;
  const bool has_digit = std::any_of(value.begin(), value.end(), is_digit);
  return has_digit ? value : std::string_view{};
}

/// Calls `see` with each field of `line` until it returns false: see cut_fields(). `spaces`: also with keys before
/// spaces.
template <class See>
void each_field(std::string_view line, FieldKeys keys, bool spaces, See see) {
  constexpr std::size_t kOfLine = 1024;
  line = line.substr(0, kOfLine);
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '[' || line[i] == '(') {
      const std::size_t close = line.find(line[i] == '[' ? ']' : ')', i + 1);
      const std::string_view value =
          close == std::string_view::npos ? std::string_view{} : line.substr(i + 1, close - i - 1);
      if (!see(CutField{'[', {}, is_value(value) ? value : std::string_view{}})) return;
    }
    if (!is_of_name(line[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && is_of_name(line[end])) ++end;
    const std::string_view word = line.substr(i, end - i);
    // "host=node7", "\"host\": \"node7\"".
    std::size_t sign = end;
    while (sign < line.size() && (line[sign] == '"' || line[sign] == '\'')) ++sign;
    if (sign < line.size() && (line[sign] == '=' || line[sign] == ':')) {
      if (keys == FieldKeys::any || names_origin(word)) {
        std::size_t at = sign + 1;
        while (at < line.size() && line[at] == ' ') ++at;
        if (const std::string_view value = value_at(line, at); is_value(value) && !see(CutField{'=', word, value}))
          return;
      }
    } else if (spaces && (keys == FieldKeys::any || names_origin(word))) {
      std::string_view value = value_behind_spaces(line, word, end);
      if (value.empty() && names_program(word))
        value = value_at(line, std::min(line.find_first_not_of(' ', end), line.size()));
      if (is_value(value) && !see(CutField{' ', word, value})) return;
    }
    // "TP0", "worker-42": letters, an optional separator, digits.
    const std::size_t letters =
        static_cast<std::size_t>(std::find_if(word.begin(), word.end(), is_digit) - word.begin());
    if (letters > 0 && letters < word.size() &&
        std::all_of(word.begin() + static_cast<std::ptrdiff_t>(letters), word.end(), is_digit)) {
      if (!see(CutField{'#', word.substr(0, letters), word})) return;
    } else if (letters == word.size() && end + 1 < line.size() &&
               std::string_view("-.#/").find(line[end]) != line.npos && is_digit(line[end + 1])) {
      std::size_t stop = end + 1;
      while (stop < line.size() && is_digit(line[stop])) ++stop;
      const bool ends = stop == line.size() || (!is_of_name(line[stop]) && line[stop] != '.' && line[stop] != '-');
      if (ends) {
        if (!see(CutField{'#', word, line.substr(i, stop - i)})) return;
        end = stop;
      }
    }
    i = end;
  }
}

}  // namespace

void cut_fields(std::string_view line, std::vector<LineField>& fields, FieldKeys keys) {
  fields.clear();
  std::size_t brackets = 0;
  each_field(line, keys, true, [&](const CutField& field) {
    if (field.sign == '[') ++brackets;
    if (!field.value.empty())
      fields.push_back(
          {field.sign == '[' ? fmt::format("[{}", brackets) : logtext::lower(field.key) + field.sign, field.value});
    return true;
  });
}

std::string_view field_of(std::string_view line, std::string_view name) {
  const bool is_bracket = name.starts_with('[');
  const auto place = is_bracket ? logtext::whole_number<std::size_t>(name.substr(1)) : std::nullopt;
  const std::string_view key = is_bracket ? std::string_view{} : name.substr(0, name.size() - 1);
  std::string_view found;
  std::size_t brackets = 0;
  each_field(line, FieldKeys::any, name.ends_with(' '), [&](const CutField& field) {
    if (field.sign == '[') {
      if (!is_bracket || ++brackets != place) return true;
    } else if (is_bracket || field.sign != name.back() || !logtext::same_letters(field.key, key)) {
      return true;
    }
    found = field.value;
    return false;
  });
  return found;
}

std::string field_pattern(const LineField& field) {
  if (field.name.starts_with('[')) return "[\\[(](?<gpu>[^\\])]+)";
  const std::string_view key = std::string_view(field.name).substr(0, field.name.size() - 1);
  if (field.name.ends_with('=')) return fmt::format("{}[\"' ]*[=:][\"' ]*(?<gpu>[^\"', ;)]+)", key);
  if (field.name.ends_with(' ')) return fmt::format("{} +(?<gpu>[^\"', ;)]+)", key);
  const std::size_t letters = static_cast<std::size_t>(
      std::find_if(field.value.begin(), field.value.end(), [](char c) { return !is_of_name(c) || is_digit(c); }) -
      field.value.begin());
  return fmt::format("(?<gpu>{}[-.#\\/]?[0-9]+)", field.value.substr(0, letters));
}

}  // namespace vramtrack
