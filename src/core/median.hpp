// Medians. Each function's name states which middle value it uses for an even number of values: the mean of the two
// is a value that was never measured, and the golden files record which one was meant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace vramtrack {

/// Moves the values for which `goes_first` holds before the others, and returns the first of the others. No branch per
/// value: on noise, a processor predicts half of them wrongly.
template <typename T, typename Test>
T* part(T* low, T* high, Test goes_first) {
  for (T* p = low; p != high; ++p) {
    const T value = *p;
    *p = *low;
    *low = value;
    low += static_cast<std::ptrdiff_t>(goes_first(value));
  }
  return low;
}

/// The value that `values` would have at `index` in ascending order. Reorders them: those before it are not above it,
/// those after it are not below. REQUIRES: index < size. O(n). On noise, five times as fast as std::nth_element, which
/// takes over if there are few values or the pivots were bad.
template <typename T>
T nth_smallest(std::span<T> values, std::size_t index) {
  constexpr std::ptrdiff_t kFew = 16;
  constexpr int kMostRounds = 32;
  T* low = values.data();
  T* high = low + values.size();
  T* const at = low + index;
  for (int round = 0; round < kMostRounds && high - low > kFew; ++round) {
    const T first = *low, middle = low[(high - low) / 2], last = high[-1];
    const T pivot = std::max(std::min(first, middle), std::min(std::max(first, middle), last));
    T* const equal = part(low, high, [pivot](T value) { return value < pivot; });
    if (at < equal) {
      high = equal;
      continue;
    }
    low = part(equal, high, [pivot](T value) { return !(pivot < value); });
    if (at < low) return pivot;
  }
  std::nth_element(low, at, high);
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

/// The same for a copy; the original stays as it is.
inline double median_of(std::vector<double> values) {
  return median(values);
}

/// Like median, for values in ascending order. O(1).
inline double median_of_sorted(std::span<const double> values) {
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

}  // namespace vramtrack
