// Medians. Each function's name says which of the two middle values an even number of values has: the mean of the two
// is a value that was never measured, and the golden files record which one was meant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace vramtrack {

/// The value that `values` would have at `index` in ascending order; reorders them. REQUIRES: index < size. O(n).
template <typename T>
T nth_smallest(std::span<T> values, std::size_t index) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// The middle value; for an even number, the upper of the two middle ones. Reorders. REQUIRES: not empty. O(n).
template <typename T>
T upper_median(std::span<T> values) {
  return nth_smallest(values, values.size() / 2);
}

/// The middle value; for an even number, the mean of the two middle ones. Reorders. REQUIRES: not empty. O(n).
inline double median(std::span<double> values) {
  const double upper = upper_median(values);
  if (values.size() % 2 == 1) return upper;
  return 0.5 * (upper + *std::ranges::max_element(values.first(values.size() / 2)));
}

/// Like median, for values in ascending order. O(1).
inline double median_of_sorted(std::span<const double> values) {
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

}  // namespace vramtrack
