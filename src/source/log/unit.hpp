// The unit of memory amounts that are written without a unit.
#pragma once

#include <algorithm>
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

/// Bytes in the unit of --unit, 0 if not given. Units mean the same as in a log. An Error names the unknown
/// unit.
Result<std::uint64_t> unit_of(const LogOptions& options);

/// The warning for a log that gives only free memory, at most `most_bytes`.
std::string only_free(std::uint64_t most_bytes);
/// The substitute for the total in such a log, with `readings` known readings: the most that was free, with that
/// warning; 0 if the capacity is given, which is the total. Error: there are too few readings.
Result<std::uint64_t> most_free_of(std::uint64_t most_bytes, std::size_t readings,
                                   const std::optional<std::uint64_t>& capacity_bytes,
                                   std::vector<std::string>& assumptions);

/// The kinds of GPU memory figures in a log.
struct FiguresSeen {
  bool used = false;  ///< amounts, including those of a program's allocator
  bool free = false, total = false, percent = false, peak = false;
};
/// The figure from which memory in use is read: the most reliable one. Percentages are coarse, free memory alone lacks
/// the total, and a peak never falls.
enum class InUse : std::uint8_t { nothing, used, free_and_total, percent, free, peak };
InUse in_use_from(const FiguresSeen& seen);

/// The unit of amounts that do not have one.
struct GuessedUnit {
  std::uint64_t bytes = 0;
  bool is_unknown = false;  ///< two units are possible: `bytes` is the larger one
};

/// 10^6 or 10^9 in place of the `unit_bytes` of 2^20 or 2^30 that `written` names, if only that makes `values` whole
/// numbers of 512-byte allocations: "601.358336" MB. Adds that to `assumptions`. Returns 0 if it does not, or if
/// `written` has MiB or GiB.
std::uint64_t decimal_unit(std::span<const double> values, std::uint64_t unit_bytes, std::string_view written,
                           std::vector<std::string>& assumptions);

/// Amounts of used memory without a unit.
struct BareAmounts {
  double most = 0;
  bool has_fraction = false;
  std::optional<double> total{};  ///< in the unit of the amounts, if known
  std::vector<double> values{};   ///< for the rule of decimal_unit()

  void add(double value, bool is_fraction) {
    most = std::max(most, value);
    has_fraction |= is_fraction;
    values.push_back(value);
  }
};

/// Guesses the unit of `amounts` from the sizes of real cards. `capacity_bytes` (of the device) is given if known. Adds
/// the guess to `assumptions`; `what` names the amounts: "the used column".
GuessedUnit guess_unit(const BareAmounts& amounts, std::string_view what, std::optional<std::uint64_t> capacity_bytes,
                       std::vector<std::string>& assumptions);
/// The same for `values` as written; MiB if they have units of their own. `comma`: decimal commas may occur.
GuessedUnit guess_unit(std::span<const std::string_view> values, bool comma,
                       std::optional<std::uint64_t> capacity_bytes, std::optional<double> total,
                       std::vector<std::string>& assumptions);

/// "37", "37 %": a percentage as the value of a device_busy sample; nullopt if it is not a percentage.
std::optional<std::uint64_t> busy_of_percent(std::string_view text);
/// The same for a figure called a ratio: "0.37", or a percentage if it exceeds 1, because DCGM 4.5 and 4.6 give
/// percentages that name (DCGM_FI_DEV_GPU_UTIL_RATIO).
std::optional<std::uint64_t> busy_of_ratio(std::string_view text);
/// The same for a value that was read as a share of 1.
inline std::uint64_t percent_of_ratio(std::uint64_t busy) {
  constexpr std::uint64_t kPercent = 100;
  return static_cast<double>(busy) > kBusyWhole ? busy / kPercent : busy;
}

}  // namespace vramtrack
