#include "source/log/unit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "core/format.hpp"
#include "core/option.hpp"
#include "core/series.hpp"
#include "core/units.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

constexpr std::string_view kUsedColumn = "the used column";

/// 10^6 or 10^9 if only that makes `values` whole numbers of allocations; otherwise 0.
std::uint64_t decimal_unit(std::span<const double> values, std::uint64_t unit_bytes) {
  constexpr double kAllocation = 512;
  constexpr double kRounded = 1e-3;  // a number with 17 digits is exact to a byte
  constexpr std::size_t kFewest = 3;
  if (unit_bytes != kBytesPerMiB && unit_bytes != kBytesPerGiB) return 0;
  const double decimal = unit_bytes == kBytesPerMiB ? 1e6 : 1e9;
  std::set<double> decisive;
  for (const double value : values) {
    if (value == std::floor(value)) continue;
    if (std::abs(std::remainder(value * decimal, kAllocation)) > kRounded) return 0;
    if (std::abs(std::remainder(value * static_cast<double>(unit_bytes), kAllocation)) > 1) decisive.insert(value);
  }
  return decisive.size() < kFewest ? 0 : static_cast<std::uint64_t>(decimal);
}

}  // namespace

Result<std::uint64_t> unit_of(const LogOptions& options) {
  if (options.unit.empty()) return 0;
  if (const std::uint64_t bytes = logtext::unit_bytes(options.unit); bytes != 0 && bytes <= kBytesPerGiB) return bytes;
  return fail(fmt::format("unit '{}' is not known; use B, KiB, MiB, GiB, MB (the same as MiB), GB or megabytes (10^6)",
                          options.unit));
}

std::string only_free(std::uint64_t most_bytes) {
  return fmt::format(
      "only the free memory is given: what is used is counted from the most that was free, {}; if the total is known, "
      "give "
      "it with {}",
      format_size(most_bytes), name_of(Option::capacity));
}

InUse in_use_from(const FiguresSeen& seen) {
  if (seen.used) return InUse::used;
  if (seen.free && seen.total) return InUse::free_and_total;
  if (seen.percent) return InUse::percent;
  if (seen.free) return InUse::free;
  return seen.peak ? InUse::peak : InUse::nothing;
}

Result<std::uint64_t> most_free_of(std::uint64_t most_bytes, std::size_t readings,
                                   const std::optional<std::uint64_t>& capacity_bytes,
                                   std::vector<std::string>& assumptions) {
  constexpr std::size_t kFewest = 5;
  if (capacity_bytes) return 0;
  if (readings < kFewest)
    return fail(fmt::format(
        "only the free memory is given, in {} row{}, too few to show how it changes; give the total with {}", readings,
        readings == 1 ? "" : "s", name_of(Option::capacity)));
  assumptions.push_back(only_free(most_bytes));
  return most_bytes;
}

std::uint64_t decimal_unit(std::span<const double> values, std::uint64_t unit_bytes, std::string_view written,
                           std::vector<std::string>& assumptions) {
  const bool is_mb = unit_bytes == kBytesPerMiB;
  const std::uint64_t decimal = decimal_unit(values, unit_bytes);
  if (decimal == 0 || logtext::lower(written).find(is_mb ? "mib" : "gib") != std::string::npos) return 0;
  const auto example = std::find_if(values.begin(), values.end(), [](double v) { return v != std::floor(v); });
  assumptions.push_back(
      fmt::format("{} is read as 10^{} bytes, since only then are values such as '{}' whole numbers of allocations",
                  is_mb ? "MB" : "GB", is_mb ? 6 : 9, *example));
  return decimal;
}

GuessedUnit guess_unit(const BareAmounts& amounts, std::string_view what, std::optional<std::uint64_t> capacity_bytes,
                       std::vector<std::string>& assumptions) {
  // No GPU has 4 TiB (4e6 MiB), or even more than 288 GiB (AMD MI355X, NVIDIA B300).
  constexpr double kBytesFrom = 4e6;
  constexpr double kMostGiB = 300;
  // A driver's context alone takes more MiB than this: values that stay below it cannot be used memory in MiB.
  constexpr double kLeastMiB = 64;
  const double room_gib = capacity_bytes ? static_cast<double>(*capacity_bytes) / kGiB : kMostGiB;
  GuessedUnit out{kBytesPerMiB};
  std::string_view name = "MiB";
  if (amounts.most >= kBytesFrom) {
    name = "bytes";
    out.bytes = 1;
  } else if (amounts.has_fraction && std::max(amounts.most, amounts.total.value_or(0)) <= room_gib) {
    name = "GiB";
    out.bytes = kBytesPerGiB;
    out.is_unknown = amounts.most >= kLeastMiB && !capacity_bytes && !amounts.total;
  }
  // No card has so few KiB, or so many GiB.
  constexpr double kLeastTotalMiB = 1000;
  const bool is_certain = out.bytes == kBytesPerMiB && !amounts.has_fraction && amounts.total >= kLeastTotalMiB &&
                          amounts.total <= kMostGiB * 1024;
  if (out.is_unknown)
    assumptions.push_back(
        fmt::format("the unit of {} is unknown: its values (up to {:.6g}) may be MiB or GiB; growth and "
                    "verdict are in the file's own unit; give {}",
                    what == kUsedColumn ? "the used memory" : what, amounts.most, name_of(Option::unit)));
  else if (!is_certain)
    assumptions.push_back(
        fmt::format("{} has no unit: {} are assumed from its values (up to {:.6g}); if that is wrong, give {}", what,
                    name, amounts.most, name_of(Option::unit)));
  if (const std::uint64_t decimal = decimal_unit(amounts.values, out.bytes); decimal != 0) {  // else not whole numbers
    out = {decimal};
    assumptions.back() = fmt::format(
        "{} has no unit: {} bytes are assumed, since only then are its values whole numbers of allocations; if that is "
        "wrong, give {}",
        what, decimal == 1'000'000 ? "10^6" : "10^9", name_of(Option::unit));
  }
  return out;
}

GuessedUnit guess_unit(std::span<const std::string_view> values, bool comma,
                       std::optional<std::uint64_t> capacity_bytes, std::optional<double> total,
                       std::vector<std::string>& assumptions) {
  if (values.empty()) return {kBytesPerMiB};
  BareAmounts amounts;
  amounts.total = total;
  for (const std::string_view text : values) {
    logtext::Decimal number;
    if (!logtext::read_decimal(text, number, comma)) continue;
    if (number.length != text.size()) return {kBytesPerMiB};  // the values have units
    amounts.add(number.value(), number.has_fraction);
  }
  return guess_unit(amounts, kUsedColumn, capacity_bytes, assumptions);
}

std::optional<std::uint64_t> busy_of_percent(std::string_view text) {
  text = logtext::trim(text);
  logtext::Decimal number;
  if (!logtext::read_decimal(text, number) || number.negative || number.value() > 100) return std::nullopt;
  const std::string_view rest = logtext::trim(text.substr(number.length));
  if (!rest.empty() && rest != "%") return std::nullopt;
  constexpr auto kPerPercent = static_cast<std::uint64_t>(kBusyWhole / 100);
  if (number.nano == 0) return number.whole * kPerPercent;
  return static_cast<std::uint64_t>(std::llround(number.value() / 100 * kBusyWhole));
}

std::optional<std::uint64_t> busy_of_ratio(std::string_view text) {
  logtext::Decimal number;
  text = logtext::trim(text);
  if (!logtext::read_decimal(text, number) || number.length != text.size() || number.negative || number.value() > 1)
    return busy_of_percent(text);
  return static_cast<std::uint64_t>(std::llround(number.value() * kBusyWhole));
}

}  // namespace vramtrack
