// Small scanners for untrusted bytes: trimming, lines, decimals, amounts of memory. They are pure and do not allocate;
// they are inline because the CSV path runs them for every line.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "core/ascii.hpp"
#include "core/memory_unit.hpp"
#include "core/units.hpp"

namespace vramtrack::logtext {

using vramtrack::is_ascii_letter;
using vramtrack::is_digit;
using vramtrack::is_space;
using vramtrack::lower;
using vramtrack::take_word;

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

inline bool same_letters(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

/// Whether a word of its own begins with the letter text[at]: "Used" in "memUsed", and "Memory" in "GPUMemory", but no
/// word in "GPUs" and "NVMe". Units ("MiB") are for the caller to except.
inline bool begins_capital_word(std::string_view text, std::size_t at) {
  const auto capital = [&](std::size_t i) { return i < text.size() && text[i] >= 'A' && text[i] <= 'Z'; };
  const auto small = [&](std::size_t i) { return i < text.size() && text[i] >= 'a' && text[i] <= 'z'; };
  if (at == 0 || !capital(at)) return false;
  return small(at - 1) || (at > 1 && capital(at - 1) && capital(at - 2) && small(at + 1) && small(at + 2));
}

/// Takes the next line off `rest`, without its "\n" or "\r\n".
inline std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

/// The whole of `text` as an unsigned integer.
template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A decimal as written: `whole` + `nano` / 1e9 (digits past the ninth are dropped).
struct Decimal {
  std::uint64_t whole = 0;
  std::uint32_t nano = 0;
  bool negative = false;
  bool has_fraction = false;
  std::size_t length = 0;  ///< number of characters read
  [[nodiscard]] double value() const {
    const double magnitude = static_cast<double>(whole) + static_cast<double>(nano) * 1e-9;
    return negative ? -magnitude : magnitude;
  }
};

/// Reads a decimal at the start of `text`. `comma`: a decimal comma is accepted as well ("12,5"). Returns false if
/// there is no number there, or it has more than 19 whole digits.
inline bool read_decimal(std::string_view text, Decimal& out, bool comma = false) {
  const char* p = text.data();
  const char* const end = p + text.size();
  out = Decimal{};
  if (p != end && (*p == '-' || *p == '+')) out.negative = *p++ == '-';
  const char* const first = p;
  while (p != end && is_digit(*p)) out.whole = out.whole * 10 + static_cast<std::uint64_t>(*p++ - '0');
  const auto digits = p - first;
  if (digits > 19) return false;
  if (p != end && (*p == '.' || (comma && *p == ','))) {
    ++p;
    std::uint32_t scale = 100'000'000;
    const char* const fraction = p;
    for (; p != end && is_digit(*p); ++p) {
      out.nano += static_cast<std::uint32_t>(*p - '0') * scale;
      scale /= 10;
    }
    out.has_fraction = p != fraction;
    if (digits == 0 && !out.has_fraction) return false;
  } else if (digits == 0) {
    return false;
  }
  if (p + 1 < end && (*p == 'e' || *p == 'E') && (is_digit(p[1]) || p[1] == '-' || p[1] == '+')) {
    double value = 0;
    const auto parsed = std::from_chars(first, end, value);
    if (parsed.ec != std::errc{} || !(value < 1e18)) return false;
    out.whole = static_cast<std::uint64_t>(value);
    out.nano = static_cast<std::uint32_t>((value - std::floor(value)) * 1e9);
    out.has_fraction = out.nano != 0;
    p = parsed.ptr;
  }
  out.length = static_cast<std::size_t>(p - text.data());
  return true;
}

/// `text` if all of it is a number. `comma`: as in read_decimal().
inline std::optional<double> number_in(std::string_view text, bool comma = false) {
  Decimal number;
  if (!read_decimal(text, number, comma) || number.length != text.size()) return std::nullopt;
  return number.value();
}

/// The entry of `counts` with the highest count; the end iterator if it is empty.
template <class Map>
auto most_frequent(const Map& counts) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

/// Bytes in one unit; 0 for an unknown word.
inline std::uint64_t unit_bytes(std::string_view word) {
  return memory_unit(word);
}

/// Whether `text` is a word for "no value": N/A, [Not Supported], [Insufficient Permissions], -, nan, ...
inline bool is_missing(std::string_view text) {
  if (text.empty() || text == "-") return true;
  if (text.front() == '[' && text.back() == ']') return true;
  if (is_digit(text.front())) return false;
  for (const std::string_view word : {"N/A", "NA", "nan", "null", "none", "not supported", "unknown error",
                                      "insufficient permissions", "not available", "ERR!", "n/a / n/a", "--", "??"})
    if (same_letters(text, word)) return true;
  return false;
}

enum class Amount : std::uint8_t { read, missing, bad };

/// Reads an amount of memory ("841 MiB", "2204.4", "[N/A]"); a number without a unit counts in
/// `default_unit` bytes. `has_unit` (if given) is set to whether one was written.
inline Amount read_amount(std::string_view text, std::uint64_t default_unit, std::uint64_t& bytes, bool comma = false,
                          bool* has_unit = nullptr) {
  Decimal number;
  if (!read_decimal(text, number, comma)) return is_missing(trim(text)) ? Amount::missing : Amount::bad;
  if (number.negative && (number.whole != 0 || number.nano != 0)) return Amount::bad;
  std::uint64_t unit = default_unit;
  const char* p = text.data() + number.length;
  const char* const end = text.data() + text.size();
  if (has_unit != nullptr) *has_unit = p != end;
  if (p != end) {
    if (end - p == 4 && std::memcmp(p, " MiB", 4) == 0) {
      unit = kBytesPerMiB;
    } else {
      const std::string_view word = trim({p, static_cast<std::size_t>(end - p)});
      if (!word.empty()) {
        unit = unit_bytes(word);
        if (unit == 0 && (end - p == 1 || (end - p == 2 && p[1] == 'i')))  // "3.95G", "3.95Gi"
          unit = *p == 'G' ? kBytesPerGiB : *p == 'M' ? kBytesPerMiB : 0;
        if (unit == 0) return Amount::bad;
      } else if (has_unit != nullptr) {
        *has_unit = false;
      }
    }
  }
  // 2^60 bytes is far beyond any device; a larger figure is a malformed line, not memory.
  if (number.whole > (std::uint64_t{1} << 60) / unit) return Amount::bad;
  bytes = number.whole * unit;
  if (number.nano != 0)
    bytes +=
        static_cast<std::uint64_t>(std::llround(static_cast<double>(number.nano) * 1e-9 * static_cast<double>(unit)));
  return Amount::read;
}

/// `text` cut to `limit` characters, control characters replaced, for use in messages.
std::string excerpt(std::string_view text, std::size_t limit = 60);

}  // namespace vramtrack::logtext
