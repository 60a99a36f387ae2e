// Kendall's score S of a sequence, by which the tests of Mann (1945) and Kendall (1975) judge whether it rises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vramtrack {

/// Of the values that `value(i)` gives for i < n: pairs in rising order less pairs in falling order. O(n^2).
template <class Value>
std::int64_t kendall_score(std::size_t n, Value value) {
  std::int64_t score = 0;
  for (std::size_t i = 0; i + 1 < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) score += (value(j) > value(i) ? 1 : 0) - (value(j) < value(i) ? 1 : 0);
  return score;
}

/// The variance of S of n values in random order, without ties, which reduce it.
constexpr double kendall_variance(double n) {
  return n * (n - 1) * (2 * n + 5) / 18;
}

/// The chance that n values in random order have this S or a higher one. Exact; ties make it conservative.
/// REQUIRES: n <= 64. O(n^4).
double kendall_p(std::size_t n, std::int64_t score);

/// The chance that these values in random order have their S or a higher one; 1 if S <= 0. The normal approximation
/// with the variance that ties leave (Mann 1945, Kendall 1975), for any number of values. O(n^2).
double mann_kendall_p(std::span<const double> values);

}  // namespace vramtrack
