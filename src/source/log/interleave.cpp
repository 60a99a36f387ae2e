#include "source/log/interleave.hpp"

#include <cmath>

namespace vramtrack {
namespace {

constexpr std::size_t kMostSeries = 16;
/// So many times shorter is the way by steps of n than by steps of one. Of one series it is longer: the way grows with
/// the step, and that of noise stays; of one that swings with a period of n rows it may be shorter, but to this extent
/// only where it jumps between as many levels as there are rows in the period.
constexpr double kShorter = 8;

}  // namespace

std::size_t count_interleaved(std::span<const double> values) {
  if (values.size() < 2 * kMostSeries) return 1;
  const auto way = [&](std::size_t step) {
    double sum = 0;
    for (std::size_t i = kMostSeries; i < values.size(); ++i) sum += std::abs(values[i] - values[i - step]);
    return sum;
  };
  const double by_one = way(1);
  for (std::size_t n = 2; n <= kMostSeries; ++n)
    if (by_one > kShorter * way(n)) return n;
  return 1;
}

}  // namespace vramtrack
