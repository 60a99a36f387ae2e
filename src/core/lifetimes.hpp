// SiteLifetimes: what one line of a program has allocated, by age, and how much of it is still live.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace vramtrack {

/// Upper bounds of the ages by which stretches of time are distinguished, measured at their middle; finer when young.
inline constexpr std::array<double, 15> kStretches_s = {
    60,   120,   180,   300,   450,
    600,  900,   1800,  2700,  3600,
    7200, 14400, 28800, 86400, std::numeric_limits<double>::infinity()};

/// What was allocated in one stretch of time.
struct AgedBytes {
  double youngest_s = 0, oldest_s = 0;  ///< how long ago the stretch ended and began
  double allocated_bytes = 0;
  double live_bytes = 0;  ///< the part of it still live
  friend bool operator==(const AgedBytes&, const AgedBytes&) = default;
};

struct SiteLifetimes {
  std::string site;       ///< "train.py:57 train_step"
  double live_bytes = 0;  ///< all that it holds of what was allocated since tracing of its process began
  double live_blocks = 0;
  double error_bytes = 0;  ///< standard error of that; 0: exact
  double idle_s = 0;       ///< since its last allocation
  std::vector<AgedBytes>
      ages;  ///< oldest first; they do not overlap; none: only the sum is known, and nothing is judged by it
  friend bool operator==(const SiteLifetimes&, const SiteLifetimes&) = default;
};

}  // namespace vramtrack
