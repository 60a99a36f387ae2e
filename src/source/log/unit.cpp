#include "source/log/unit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

Result<std::uint64_t> unit_of(const LogOptions& options) {
  const std::string& unit = options.unit;
  if (unit.empty()) return 0;
  if (unit == "MB") return 1'000'000;
  if (unit == "GB") return 1'000'000'000;
  if (const std::uint64_t bytes = logtext::unit_bytes(unit); bytes != 0) return bytes;
  return fail(fmt::format("unit '{}' is not known; use B, KiB, MiB, GiB, MB or GB", unit));
}

std::uint64_t guess_unit(std::span<const std::string_view> values, bool comma, std::vector<std::string>& assumptions) {
  double most = 0;
  bool fraction = false;
  for (const std::string_view text : values) {
    logtext::Decimal number;
    if (!logtext::read_decimal(text, number, comma)) continue;
    if (number.length != text.size()) return kBytesPerMiB;  // the values have units
    most = std::max(most, number.value());
    fraction |= number.has_fraction;
  }
  if (values.empty()) return kBytesPerMiB;
  // No GPU has 4 TiB, and none is watched whose use stays below 512 MiB to the fraction of a MiB.
  const std::string_view unit = most >= 4e6 ? "bytes" : fraction && most <= 512 ? "GiB" : "MiB";
  assumptions.push_back(fmt::format(
      "the used column has no unit: {} are assumed from its values (up to {:.6g}); else give --unit", unit, most));
  return unit == "bytes" ? 1 : unit == "GiB" ? kBytesPerGiB : kBytesPerMiB;
}

}  // namespace vramtrack
