// Reads sizes and numbers as messages spell them.
#include <cmath>
#include <cstdint>

#include "core/ascii.hpp"
#include "core/units.hpp"
#include "explain/pattern.hpp"

namespace vramtrack::explain {
namespace {

/// The number of digits at `at`.
std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t n = 0;
  while (at + n < text.size() && is_digit(text[at + n])) ++n;
  return n;
}

bool is_word(char c) {
  return is_digit(c) || (normal(c) >= 'a' && normal(c) <= 'z');
}

/// The factor of the unit at `at`, which moves past it; 0: no unit.
double read_unit(std::string_view text, std::size_t& at) {
  std::size_t end = at;
  while (end < text.size() && end - at < 6 && normal(text[end]) >= 'a' && normal(text[end]) <= 'z') ++end;
  if (end < text.size() && is_word(text[end])) return 0;
  char letters[6];
  for (std::size_t i = at; i < end; ++i) letters[i - at] = normal(text[i]);
  const std::string_view unit(letters, end - at);
  static constexpr struct {
    std::string_view name;
    double bytes;
  } kUnits[] = {{"bytes", 1},     {"byte", 1},  {"b", 1},      {"k", kKiB},     {"kb", kKiB},       {"kib", kKiB},
                {"m", kMiB},      {"mb", kMiB}, {"mib", kMiB}, {"g", kGiB},     {"gb", kGiB},       {"gib", kGiB},
                {"t", kTiB},      {"tb", kTiB}, {"tib", kTiB}, {"mbyte", kMiB}, {"gbyte", kGiB},    {"mbytes", kMiB},
                {"gbytes", kGiB}, {"gi", kGiB}, {"mi", kMiB},  {"ki", kKiB},    {"p", 1024 * kTiB}, {"e", kTiB * kMiB}};
  for (const auto& known : kUnits)
    if (unit == known.name) {
      at = end;
      return known.bytes;
    }
  return 0;
}

}  // namespace

std::optional<double> read_number(std::string_view text, std::size_t& at) {
  std::size_t n = digits_at(text, at);
  if (n == 0 || n > 24) return std::nullopt;
  double value = 0;
  const auto take = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) value = value * 10 + (text[at + i] - '0');
    at += count;
  };
  take(n);
  for (std::size_t groups = 0; groups < 6 && at < text.size() && text[at] == ','; ++groups) {
    if (digits_at(text, at + 1) != 3) break;
    ++at;
    take(3);
  }
  if (at + 1 < text.size() && (text[at] == '.' || text[at] == ',') && is_digit(text[at + 1])) {
    n = digits_at(text, at + 1);
    double scale = 1;
    for (std::size_t i = 0; i < n; ++i) {
      scale /= 10;
      value += scale * (text[at + 1 + i] - '0');
    }
    at += n + 1;
  }
  return value;
}

std::optional<double> read_size(std::string_view text, std::size_t& at) {
  const auto number = read_number(text, at);
  if (!number) return std::nullopt;
  if (at < text.size() && text[at] == '.' && (at + 1 >= text.size() || text[at + 1] == ' ')) {
    std::size_t behind = at + 1;  // "201. GiB", as in NumPy, not the end of a sentence
    while (behind < text.size() && text[behind] == ' ') ++behind;
    if (const double unit = read_unit(text, behind); unit > 1) {
      at = behind;
      return *number * unit;
    }
  }
  std::size_t behind = at;
  while (behind < text.size() && behind - at < 3 && text[behind] == ' ') ++behind;
  if (const double unit = read_unit(text, behind); unit > 0) {
    at = behind;
    return *number * unit;
  }
  return *number;
}

}  // namespace vramtrack::explain
