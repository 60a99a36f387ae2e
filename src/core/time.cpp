#include "core/time.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/ascii.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

/// Splits "24 GiB" into the number and the unit; the unit may be empty.
bool split_number(std::string_view text, double& number, std::string_view& unit) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc{} || !std::isfinite(number)) return false;
  unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return true;
}

}  // namespace

Duration from_seconds(double seconds) {
  constexpr double kMax = 9.2e18;
  const double ns = seconds * 1e9;
  if (!(ns < kMax)) return Duration{std::numeric_limits<std::int64_t>::max()};
  if (ns < -kMax) return Duration{std::numeric_limits<std::int64_t>::min()};
  return Duration{std::llround(ns)};
}

std::string iso8601(Timestamp time) {
  // In milliseconds: the day of the earliest time began before it, outside the range of nanoseconds.
  const auto whole_ms = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(whole_ms);
  const std::chrono::year_month_day ymd{day};
  const auto ms = (whole_ms - day).count();
  std::string out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(ymd.year()),
                                static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), ms / 3'600'000,
                                ms / 60'000 % 60, ms / 1000 % 60);
  if (ms % 1000 != 0) out += fmt::format(".{:03}", ms % 1000);
  return out + 'Z';
}

Result<double> parse_duration_s(std::string_view text) {
  static constexpr std::array<Unit, 23> kUnits{
      {{"", 1},         {"s", 1},        {"sec", 1},    {"ms", 1e-3},     {"m", 60},        {"min", 60},
       {"mins", 60},    {"minutes", 60}, {"h", 3600},   {"hours", 3600},  {"hour", 3600},   {"d", 86400},
       {"days", 86400}, {"day", 86400},  {"second", 1}, {"seconds", 1},   {"secs", 1},      {"minute", 60},
       {"hr", 3600},    {"hrs", 3600},   {"w", 604800}, {"week", 604800}, {"weeks", 604800}}};
  double number = 0;
  std::string_view unit;
  if (split_number(text, number, unit) && number >= 0) {
    const std::string name = lower(unit);
    for (const Unit& u : kUnits)
      if (u.name == name) return number * u.factor;
  }
  return fail(fmt::format("'{}' is not a duration; write, for example, 30s, 5min, 1.5h or 2d", text));
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<Unit, 18> kUnits{{{"", 1},
                                                {"b", 1},
                                                {"bytes", 1},
                                                {"k", kKiB},
                                                {"kib", kKiB},
                                                {"kb", 1e3},
                                                {"m", kMiB},
                                                {"mib", kMiB},
                                                {"mb", 1e6},
                                                {"g", kGiB},
                                                {"gib", kGiB},
                                                {"gb", 1e9},
                                                {"t", kTiB},
                                                {"tib", kTiB},
                                                {"tb", 1e12},
                                                {"ki", kKiB},
                                                {"mi", kMiB},
                                                {"gi", kGiB}}};
  double number = 0;
  std::string_view unit;
  if (split_number(text, number, unit) && number >= 0) {
    const std::string name = lower(unit);
    for (const Unit& u : kUnits)
      if (u.name == name && number * u.factor < 1.8e19)
        return static_cast<std::uint64_t>(std::llround(number * u.factor));
  }
  return fail(fmt::format("'{}' is not a size; write, for example, 24GiB, 512MiB or a number of bytes", text));
}

}  // namespace vramtrack
