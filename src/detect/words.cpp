#include "detect/words.hpp"

#include <fmt/format.h>

#include <cmath>

namespace vramtrack {
namespace {
constexpr double kMiB = 1048576;
}

std::string size_words(double bytes) {
  if (std::abs(bytes) >= 1024 * kMiB) return fmt::format("{:.1f} GiB", bytes / (1024 * kMiB));
  return fmt::format("{:.0f} MiB", bytes / kMiB);
}

std::string rate_words(double bytes_per_s) {
  const double per_min = bytes_per_s * 60 / kMiB;
  if (std::abs(per_min) >= 1024) return fmt::format("{:.1f} GiB/min", per_min / 1024);
  if (std::abs(per_min) >= 1 || per_min == 0) return fmt::format("{:.1f} MiB/min", per_min);
  return fmt::format("{:.1f} MiB/h", per_min * 60);
}

std::string span_words(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} d", seconds / 86400);
}

}  // namespace vramtrack
