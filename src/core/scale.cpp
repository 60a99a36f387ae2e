#include "core/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/format.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

double finite(double value) {
  return std::isfinite(value) ? value : 0.0;
}

/// An amount in the log's own unit, which is not named.
std::string units(const Scale& scale, double bytes) {
  const double number = finite(bytes) / scale.unit_bytes;
  return fmt::format("{:.{}f}", number, std::abs(number) >= 100 ? 1 : 3);
}

/// "+0.12 MiB/step": growth if steps are counted instead of time.
std::string growth_per_step(const Scale& scale, double bytes_per_s, bool sign) {
  const double growth = finite(bytes_per_s) * scale.step_s;
  const std::string words =
      scale.has_unit ? format_growth(growth, scale.step) : fmt::format("{} units/{}", units(scale, growth), scale.step);
  return sign && growth > 0 && !words.starts_with("0 ") ? '+' + words : words;
}

/// Growth over time, in the log's own unit.
std::string units_per_min(const Scale& scale, double bytes_per_s, bool sign) {
  const std::string words = units(scale, finite(bytes_per_s) * kSecondsPerMinute);
  return (sign && bytes_per_s > 0 ? "+" : "") + words + " units/min";
}

/// How many steps these seconds of the time axis are: for "1,200 steps".
double steps(const Scale& scale, double seconds) {
  return std::max(0.0, std::isnan(seconds) ? 0.0 : seconds) / scale.step_s;
}

std::string format_steps(const Scale& scale, double seconds) {
  const double count = steps(scale, seconds);
  if (count >= 1e12) return fmt::format("over 10^12 {}", plural(scale.step));
  return format_count(static_cast<std::uint64_t>(std::llround(count)), scale.step);
}

}  // namespace

std::string Scale::bytes(double bytes) const {
  return has_unit ? format_bytes(bytes) : units(*this, bytes) + " (unit unknown)";
}

std::string Scale::bytes_of(double used_bytes, double capacity_bytes) const {
  if (has_unit) return format_bytes_of(used_bytes, capacity_bytes);
  return fmt::format("{}/{} (unit unknown)", units(*this, used_bytes), units(*this, capacity_bytes));
}

std::string Scale::rate(double bytes_per_s) const {
  if (counts_steps()) return growth_per_step(*this, bytes_per_s, true);
  return has_unit ? format_rate(bytes_per_s) : units_per_min(*this, bytes_per_s, true);
}

std::string Scale::rate(const Interval& bytes_per_s) const {
  return counts_steps() || !has_unit ? rate(bytes_per_s.mid) : format_rate(bytes_per_s);
}

std::string Scale::scaled_rate(double bytes_per_s) const {
  if (counts_steps()) return growth_per_step(*this, bytes_per_s, false);
  return has_unit ? format_scaled_rate(bytes_per_s) : units_per_min(*this, bytes_per_s, false);
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
