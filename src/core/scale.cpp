#include "core/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/finite.hpp"
#include "core/format.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

/// An amount in the log's own unit, without its name.
std::string number(const Scale& scale, double bytes) {
  const double own = finite(bytes) / scale.unit_bytes;
  const double size = std::abs(own);
  if (scale.unit == AmountUnit::unknown) return fmt::format("{:.{}f}", own, size >= 100 ? 1 : 3);
  constexpr double kLeast = 0.0005;
  if (size < kLeast) return "0";
  return fmt::format("{:.{}f}", own, own == std::round(own) ? 0 : size >= 1 ? 1 : size >= 0.1 ? 2 : 3);
}

/// "1.8 %/min", "0.120 units/step": growth in the log's own unit.
std::string growth(const Scale& scale, double bytes, std::string_view per) {
  return fmt::format("{} {}/{}", number(scale, bytes), scale.unit == AmountUnit::percent ? "%" : "units", per);
}

std::string with_sign(std::string growth_words, double growth) {
  return growth > 0 && !growth_words.starts_with("0 ") ? '+' + growth_words : growth_words;
}

/// "0.12 MiB/step": growth if steps are counted instead of time.
std::string growth_per_step(const Scale& scale, double bytes_per_s) {
  const double bytes = finite(bytes_per_s) * scale.step_s;
  return scale.counts_bytes() ? format_growth(bytes, scale.step) : growth(scale, bytes, scale.step);
}

/// Growth over time, in the log's own unit.
std::string growth_per_min(const Scale& scale, double bytes_per_s) {
  return growth(scale, finite(bytes_per_s) * kSecondsPerMinute, "min");
}

/// The number of steps in these seconds of the time axis, for "1,200 steps".
double steps(const Scale& scale, double seconds) {
  return std::max(0.0, std::isnan(seconds) ? 0.0 : seconds) / scale.step_s;
}

std::string format_steps(const Scale& scale, double seconds) {
  const double count = steps(scale, seconds);
  if (count >= 1e12) return fmt::format("over 10^12 {}", plural(scale.step));
  return format_count(static_cast<std::uint64_t>(std::llround(count)), scale.step);
}

}  // namespace

Scale::AxisUnit Scale::axis_unit(double top_bytes) const {
  if (!counts_bytes()) return {unit_bytes, unit == AmountUnit::percent ? "%" : ""};
  return top_bytes >= kGiB ? AxisUnit{kGiB, "GiB"} : AxisUnit{kMiB, "MiB"};
}

std::string Scale::bytes(double bytes) const {
  if (counts_bytes()) return format_bytes(bytes);
  return number(*this, bytes) + (unit == AmountUnit::percent ? " %" : " (unit unknown)");
}

std::string Scale::bytes_of(double used_bytes, double capacity_bytes) const {
  if (counts_bytes()) return format_bytes_of(used_bytes, capacity_bytes);
  if (unit == AmountUnit::percent) return bytes(used_bytes);  // a share of the whole
  return fmt::format("{}/{} (unit unknown)", number(*this, used_bytes), number(*this, capacity_bytes));
}

std::string Scale::rate(double bytes_per_s) const {
  if (counts_steps()) return with_sign(growth_per_step(*this, bytes_per_s), bytes_per_s);
  return counts_bytes() ? format_rate(bytes_per_s) : with_sign(growth_per_min(*this, bytes_per_s), bytes_per_s);
}

std::string Scale::rate(const Interval& bytes_per_s) const {
  if (counts_bytes() && !counts_steps()) return format_rate(bytes_per_s);
  if (counts_steps() || unit == AmountUnit::unknown) return rate(bytes_per_s.mid);
  const std::string low = number(*this, finite(bytes_per_s.low) * kSecondsPerMinute);
  const std::string high = number(*this, finite(bytes_per_s.high) * kSecondsPerMinute);
  return low == high ? rate(bytes_per_s.mid) : fmt::format("{} ({} to {})", rate(bytes_per_s.mid), low, high);
}

std::string Scale::scaled_rate(double bytes_per_s) const {
  if (counts_steps()) return growth_per_step(*this, bytes_per_s);
  if (counts_bytes()) return format_scaled_rate(bytes_per_s);
  constexpr double kLeastPerMin = 0.1;
  const double per_min = std::abs(finite(bytes_per_s)) * kSecondsPerMinute / unit_bytes;
  if (unit == AmountUnit::percent && per_min < kLeastPerMin)
    return growth(*this, finite(bytes_per_s) * kSecondsPerHour, "h");
  return growth_per_min(*this, bytes_per_s);
}

std::string Scale::duration(double seconds) const {
  return counts_steps() ? format_steps(*this, seconds) : format_duration(seconds);
}

std::string Scale::span(double seconds) const {
  return counts_steps() ? format_steps(*this, seconds) : format_span(seconds);
}

std::string Scale::eta(const Interval& seconds) const {
  if (!counts_steps()) return format_eta(seconds);
  const std::string low = format_number(static_cast<std::uint64_t>(steps(*this, finite(seconds.low))));
  const std::string high = format_steps(*this, seconds.high);
  const std::string mid = format_steps(*this, seconds.mid);
  return high == mid ? mid : fmt::format("{} ({}–{})", mid, low, high.substr(0, high.find(' ')));
}

std::string Scale::oom(const Interval& seconds) const {
  return seconds.mid < 1 ? format_oom(seconds) : "out of memory in " + eta(seconds);
}

std::string Scale::moment(Timestamp time, bool clock_is_relative) const {
  if (!clock_is_relative) return format_moment(time, false);
  const double seconds = seconds_between(Timestamp{}, time);
  if (counts_steps())
    return fmt::format("{} {}", step,
                       format_number(static_cast<std::uint64_t>(std::max(0LL, std::llround(seconds / step_s)))));
  if (!is_time_of_day) return format_moment(time, true);
  const auto s = static_cast<std::int64_t>(std::llround(seconds + begins_s));
  const std::string clock = fmt::format("{:02}:{:02}:{:02}", s / 3600 % 24, s / 60 % 60, s % 60);
  return s < 86'400 ? clock : fmt::format("{} on day {}", clock, s / 86'400 + 1);
}

}  // namespace vramtrack
