#include "core/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/finite.hpp"
#include "core/local_time.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr double kYear = 365.25 * kSecondsPerDay;

/// `per_min` with as many digits as its unit needs.
std::string rate_digits(double per_min, bool sign) {
  const double size = std::abs(per_min);
  const int digits = size >= 100 ? 0 : size >= 1 ? 1 : 2;
  if (size < std::pow(10.0, -digits) / 2) return "0";
  return sign ? fmt::format("{:+.{}f}", per_min, digits) : fmt::format("{:.{}f}", per_min, digits);
}

struct RateUnit {
  double bytes_per_min;
  std::string_view name;
};
/// GiB from 10 GiB/min on, as when a model loads: five digits of MiB add nothing.
RateUnit rate_unit(double bytes_per_s) {
  if (std::abs(finite(bytes_per_s)) * 60 >= 10 * kGiB) return {kGiB, " GiB/min"};
  return {kMiB, " MiB/min"};
}

}  // namespace

std::string format_bytes(double bytes) {
  const double value = finite(bytes);
  if (std::abs(value) >= kGiB) return fmt::format("{:.1f} GiB", value / kGiB);
  return fmt::format("{:.0f} MiB", value / kMiB);
}

std::string format_bytes_of(double used_bytes, double capacity_bytes) {
  if (finite(capacity_bytes) >= kGiB)
    return fmt::format("{:.1f}/{:.1f} GiB", finite(used_bytes) / kGiB, capacity_bytes / kGiB);
  return fmt::format("{:.0f}/{:.0f} MiB", finite(used_bytes) / kMiB, finite(capacity_bytes) / kMiB);
}

std::string format_rate(double bytes_per_s) {
  const RateUnit unit = rate_unit(bytes_per_s);
  return rate_digits(finite(bytes_per_s) * 60 / unit.bytes_per_min, true).append(unit.name);
}

std::string format_mib_per_min(double bytes_per_s) {
  return rate_digits(finite(bytes_per_s) * 60 / kMiB, true);
}

std::string format_rate(const Interval& bytes_per_s) {
  const RateUnit unit = rate_unit(bytes_per_s.mid);
  const auto digits = [&unit](double rate) { return rate_digits(finite(rate) * 60 / unit.bytes_per_min, false); };
  if (digits(bytes_per_s.low) == digits(bytes_per_s.high)) return format_rate(bytes_per_s.mid);
  return fmt::format("{} ({} to {})", format_rate(bytes_per_s.mid), digits(bytes_per_s.low), digits(bytes_per_s.high));
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes == 1) return "1 byte";
  if (bytes < kBytesPerKiB) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / kKiB;
  std::size_t unit = 0;
  // 1023.96 would print as 1024.0.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= kKiB;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_size(std::int64_t bytes) {
  const std::string magnitude =
      format_size(bytes < 0 ? ~static_cast<std::uint64_t>(bytes) + 1 : static_cast<std::uint64_t>(bytes));
  return bytes < 0 ? fmt::format("-{}", magnitude) : magnitude;
}

std::string format_change(std::int64_t bytes) {
  return bytes > 0 ? fmt::format("+{}", format_size(bytes)) : format_size(bytes);
}

std::string format_growth(double bytes_per_iteration, std::string_view unit) {
  const double growth = finite(bytes_per_iteration);
  const double size = std::abs(growth);
  if (size >= kGiB) return fmt::format("{:.2f} GiB/{}", growth / kGiB, unit);
  if (size >= 0.01 * kMiB) return fmt::format("{:.2f} MiB/{}", growth / kMiB, unit);
  if (size >= 1) return fmt::format("{:.1f} KiB/{}", growth / kKiB, unit);
  return fmt::format("0 MiB/{}", unit);
}

std::string format_number(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string plural(std::string_view noun) {
  return fmt::format("{}{}", noun, noun.ends_with("tch") ? "es" : "s");
}

std::string format_count(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}", format_number(count), count == 1 ? std::string(noun) : plural(noun));
}

std::string format_duration(double seconds) {
  const double s = std::max(0.0, std::isnan(seconds) ? 0.0 : seconds);
  if (s >= 10 * kYear) return "over 10 years";
  // Samplers of 10 and 50 ms exist; less than half a millisecond is noise of the arithmetic.
  if (s >= 0.0005 && s < 0.0995) return fmt::format("{:.0f}ms", s * 1000);
  if (s < 9.95 && std::abs(s - std::round(s)) >= 0.05) return fmt::format("{:.1f}s", s);
  if (s < 59.5) return fmt::format("{:.0f}s", s);
  // Rounded once, to the minute, so that no part can become 60.
  const auto minutes = static_cast<std::int64_t>(std::llround(s / 60));
  if (minutes < 60) return fmt::format("{}m", minutes);
  if (minutes < 48 * 60) return fmt::format("{}h {:02}m", minutes / 60, minutes % 60);
  const auto hours = static_cast<std::int64_t>(std::llround(s / 3600));
  return fmt::format("{}d {:02}h", hours / 24, hours % 24);
}

std::string format_oom(const Interval& seconds) {
  return seconds.mid < 1 ? "out of memory now" : "out of memory in " + format_eta(seconds);
}

std::string format_eta(const Interval& seconds) {
  std::string mid = format_duration(seconds.mid);
  // "0h 47m": an hour digit shows at once that these are not days.
  if (seconds.mid >= 59.5 && mid.back() == 'm' && mid.find('h') == std::string::npos)
    mid = fmt::format("0h {:02}m", std::stoi(mid));
  const std::string low = format_duration(seconds.low);
  const std::string high = format_duration(seconds.high);
  if (low == high) return mid;
  return fmt::format("{} ({}–{})", mid, low, high);
}

std::string format_percent(double ratio) {
  const double percent = finite(ratio) * 100;
  if (percent > 0 && percent < 1) return "under 1 %";
  if (percent > 99 && percent < 100) return "over 99 %";
  return fmt::format("{:.0f} %", percent);
}

std::string format_r_squared(double r_squared) {
  return fmt::format("{:.3f}", finite(r_squared));
}

std::string format_moment(Timestamp time, bool clock_is_relative) {
  // To the second: milliseconds are noise to a reader.
  // The earliest representable second began before the earliest representable time.
  if (!clock_is_relative) {
    const Timestamp moment = std::max(time, Timestamp::min() + std::chrono::seconds{1});
    return writes_local_times() ? local_moment(moment) : iso8601(std::chrono::floor<std::chrono::seconds>(moment));
  }
  const auto s = static_cast<std::int64_t>(std::llround(seconds_between(Timestamp{}, time)));
  return fmt::format("{}h {:02}m {:02}s after the start", s / 3600, s / 60 % 60, s % 60);
}

std::size_t columns(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string fit(std::string_view utf8, std::size_t width) {
  const std::size_t have = columns(utf8);
  if (have <= width) return std::string(utf8) + std::string(width - have, ' ');
  std::string out;
  std::size_t taken = 0;
  for (const char c : utf8) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
    if (begins && ++taken > width - 1) break;
    out += c;
  }
  return out + "…";
}

std::string fit_right(std::string_view utf8, std::size_t width) {
  const std::size_t have = columns(utf8);
  return std::string(have < width ? width - have : 0, ' ') + std::string(utf8);
}

std::string format_scaled_rate(double bytes_per_s) {
  const double mib_per_min = finite(bytes_per_s) * 60 / kMiB;
  if (std::abs(mib_per_min) >= 1024) return fmt::format("{:.1f} GiB/min", mib_per_min / 1024);
  if (std::abs(mib_per_min) >= 1 || mib_per_min == 0) return fmt::format("{:.1f} MiB/min", mib_per_min);
  return fmt::format("{:.1f} MiB/h", mib_per_min * 60);
}

std::string format_span(double seconds) {
  const double s = finite(seconds);
  // A unit is used from two of it upwards: "90 s" is more precise than "2 min".
  if (s < 120) return fmt::format("{:.0f} s", s);
  if (s < 2 * 3600) return fmt::format("{:.0f} min", s / 60);
  if (s < 2 * 86400) return fmt::format("{:.1f} h", s / 3600);
  return fmt::format("{:.1f} d", s / 86400);
}

}  // namespace vramtrack
