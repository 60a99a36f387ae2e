#include "trace/words.hpp"

#include <fmt/format.h>

namespace vramtrack::trace {

std::string bytes_words(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes == 1) return "1 byte";
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.96 would print as 1024.0.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string bytes_words(std::int64_t bytes) {
  const std::string magnitude =
      bytes_words(bytes < 0 ? ~static_cast<std::uint64_t>(bytes) + 1 : static_cast<std::uint64_t>(bytes));
  return bytes < 0 ? fmt::format("-{}", magnitude) : magnitude;
}

std::string change_words(std::int64_t bytes) {
  return bytes > 0 ? fmt::format("+{}", bytes_words(bytes)) : bytes_words(bytes);
}

std::string number_words(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string count_words(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", number_words(count), noun, count == 1 ? "" : "s");
}

}  // namespace vramtrack::trace
