// The unit of amounts of memory that are written without one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/series.hpp"

namespace vramtrack {

struct LogOptions;

/// Bytes in the unit of --unit, 0 if it was not given. Units mean what they mean in a log. An Error names the unknown
/// unit.
Result<std::uint64_t> unit_of(const LogOptions& options);

/// The warning for memory in percent of a card whose size is unknown. `what`: "the used column is a percentage".
std::string nominal_scale(std::string_view what);

/// The warning for a log that gives only the free memory, of which `most_bytes` is the most.
std::string only_free(std::uint64_t most_bytes);

/// The unit of amounts that have none.
struct GuessedUnit {
  std::uint64_t bytes = 0;
  bool is_unknown = false;  ///< two are possible: `bytes` is the larger
};

/// 10^6 or 10^9, in place of the `unit_bytes` of 2^20 or 2^30, where only that makes `values` whole numbers of
/// allocations, of 512 bytes: "601.358336" MB. 0: it does not. Missing values are passed over.
std::uint64_t decimal_unit(std::span<const std::string_view> values, std::uint64_t unit_bytes);

/// Amounts of used memory without a unit.
struct BareAmounts {
  double most = 0;
  bool has_fraction = false;
  std::optional<double> total{};  ///< in the unit of the amounts, if known
};

/// Guesses the unit of `amounts` by what a card could have. `capacity_bytes` (of the device) is given if known. Adds to
/// `assumptions` what was guessed; `what` names the amounts: "the used column".
GuessedUnit guess_unit(const BareAmounts& amounts, std::string_view what, std::optional<std::uint64_t> capacity_bytes,
                       std::vector<std::string>& assumptions);
/// The same of `values` as written; MiB if they have their own units. `comma`: decimal commas may occur.
GuessedUnit guess_unit(std::span<const std::string_view> values, bool comma,
                       std::optional<std::uint64_t> capacity_bytes, std::optional<double> total,
                       std::vector<std::string>& assumptions);

/// "37", "37 %": a percentage as the value of a device_busy sample; nullopt: it is none.
std::optional<std::uint64_t> busy_of_percent(std::string_view text);
/// As above of a figure that is called a ratio: "0.37", or in per cent where it exceeds 1, since DCGM 4.5 and 4.6 call
/// a percentage so (DCGM_FI_DEV_GPU_UTIL_RATIO).
std::optional<std::uint64_t> busy_of_ratio(std::string_view text);
/// Likewise of a value that was read as a share of 1.
inline std::uint64_t settled_busy(std::uint64_t busy) {
  constexpr std::uint64_t kPercent = 100;
  return static_cast<double>(busy) > kBusyWhole ? busy / kPercent : busy;
}

}  // namespace vramtrack
