// The units of bytes and seconds, each spelled once: "64 * kMiB" rather than 67108864 or 64 << 20. The double
// is for rates, ratios and thresholds of measured values; the integer is for sizes of buffers and of blocks.
#pragma once

#include <cstdint>

namespace vramtrack {

inline constexpr double kKiB = 1024.0;
inline constexpr double kMiB = 1024.0 * 1024.0;
inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
inline constexpr double kTiB = 1024.0 * 1024.0 * 1024.0 * 1024.0;

inline constexpr std::uint64_t kBytesPerKiB = 1024;
inline constexpr std::uint64_t kBytesPerMiB = 1024 * kBytesPerKiB;
inline constexpr std::uint64_t kBytesPerGiB = 1024 * kBytesPerMiB;
inline constexpr std::uint64_t kBytesPerTiB = 1024 * kBytesPerGiB;

inline constexpr double kSecondsPerMinute = 60;
inline constexpr double kSecondsPerHour = 3600;
inline constexpr double kSecondsPerDay = 86400;

}  // namespace vramtrack
