// Room: whether a memory could hold a request at all.
#pragma once

namespace vramtrack {

/// Drivers and contexts take about a tenth of a device, so no program gets all of it.
inline constexpr double kUsableShare = 0.9;

/// Whether a request is too big for a memory, in bytes, even while the memory is empty. If not, the memory already held
/// is in its way.
constexpr bool is_too_big(double asked_bytes, double memory_bytes) {
  return asked_bytes >= kUsableShare * memory_bytes;
}

}  // namespace vramtrack
