// How much of a device's memory the driver may hold for itself, besides the memory that processes hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/units.hpp"

namespace vramtrack {

/// Contexts, page tables, the display: 768 MiB, or 1 % of the capacity if that is more. An idle data-centre GPU has 0.3
/// to 0.6 GiB in use; one with a desktop lists the compositor as a process. Anything beyond belongs to some process.
inline double driver_share_bytes(std::optional<std::uint64_t> capacity_bytes) {
  constexpr double kLeastBytes = 768 * kMiB;
  constexpr double kShare = 0.01;
  return std::max(kLeastBytes, kShare * static_cast<double>(capacity_bytes.value_or(0)));
}

}  // namespace vramtrack
