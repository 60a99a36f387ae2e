#include "source/log/line_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "source/log/memory_words.hpp"
#include "source/log/origin_words.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;

constexpr std::size_t kLongestValue = 60;

/// Whether the value of `key` identifies the writer of a line. That of a phase ("split=train") does not.
bool is_key(std::string_view key) {
  const auto same = [&](std::string_view words) {
    return std::equal(key.begin(), key.end(), words.begin(), words.end(),
                      [](char c, char of) { return (c == '_' ? ' ' : logtext::lower(c)) == of; });
  };
  return origin_word(same) != nullptr;
}

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

/// The value of a field is a name, never an amount.
bool is_value(std::string_view value) {
  return !value.empty() && value.size() <= kLongestValue && !has_amount(value);
}

}  // namespace

void cut_fields(std::string_view line, std::vector<LineField>& fields) {
  constexpr std::size_t kLooked = 1024;
  line = line.substr(0, kLooked);
  fields.clear();
  std::size_t brackets = 0;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '[' || line[i] == '(') {
      const std::size_t close = line.find(line[i] == '[' ? ']' : ')', i + 1);
      ++brackets;
      if (close != std::string_view::npos && is_value(line.substr(i + 1, close - i - 1)))
        fields.push_back({fmt::format("[{}", brackets), line.substr(i + 1, close - i - 1)});
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
    if (sign < line.size() && (line[sign] == '=' || line[sign] == ':') && is_key(word)) {
      std::size_t at = sign + 1;
      while (at < line.size() && line[at] == ' ') ++at;
      if (const std::string_view value = value_at(line, at); is_value(value))
        fields.push_back({logtext::lower(word) + "=", value});
    }
    // "TP0", "worker-42": letters, an optional separator, digits.
    const std::size_t letters =
        static_cast<std::size_t>(std::find_if(word.begin(), word.end(), is_digit) - word.begin());
    if (letters > 0 && letters < word.size() &&
        std::all_of(word.begin() + static_cast<std::ptrdiff_t>(letters), word.end(), is_digit)) {
      fields.push_back({logtext::lower(word.substr(0, letters)) + "#", word});
    } else if (letters == word.size() && end + 1 < line.size() &&
               std::string_view("-.#/").find(line[end]) != line.npos && is_digit(line[end + 1])) {
      std::size_t stop = end + 1;
      while (stop < line.size() && is_digit(line[stop])) ++stop;
      const bool ends = stop == line.size() || (!is_of_name(line[stop]) && line[stop] != '.' && line[stop] != '-');
      if (ends) {
        fields.push_back({logtext::lower(word) + "#", line.substr(i, stop - i)});
        end = stop;
      }
    }
    i = end;
  }
}

std::string_view field_of(std::string_view line, std::string_view name) {
  thread_local std::vector<LineField> fields;
  cut_fields(line, fields);
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const LineField& f) { return f.name == name; });
  return it == fields.end() ? std::string_view{} : it->value;
}

std::string field_pattern(const LineField& field) {
  if (field.name.starts_with('[')) return "[\\[(](?<gpu>[^\\])]+)";
  const std::string_view key = std::string_view(field.name).substr(0, field.name.size() - 1);
  if (field.name.ends_with('=')) return fmt::format("{}[\"' ]*[=:][\"' ]*(?<gpu>[^\"', ;)]+)", key);
  const std::size_t letters = static_cast<std::size_t>(
      std::find_if(field.value.begin(), field.value.end(), [](char c) { return !is_of_name(c) || is_digit(c); }) -
      field.value.begin());
  return fmt::format("(?<gpu>{}[-.#\\/]?[0-9]+)", field.value.substr(0, letters));
}

}  // namespace vramtrack
