// Does the forecast agree with itself: the built-in demo at the minutes at which it once did not, and kinked lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/config.hpp"

namespace vramtrack::accuracy {

struct ForecastFigures {
  int looks = 0;            ///< at the demo, over all its seeds, at which an end was said
  int missed = 0;           ///< the actual end was outside the interval
  double clean_within = 0;  ///< share of looks at noise-free lines whose middle is within 5 % of headroom / rate
  double noisy_error = 0;   ///< median, of noisy lines
  std::string tables;
};

/// `seeds` runs of the demo, and `lines` that are flat and then straight, half of them with noise.
ForecastFigures measure_forecast(std::size_t seeds, std::size_t lines, std::uint64_t seed, const Config& config,
                                 unsigned jobs);

}  // namespace vramtrack::accuracy
