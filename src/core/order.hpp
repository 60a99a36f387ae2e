// Sorting of large structs: their indices are sorted, then each struct is moved once. std::sort and std::stable_sort of
// the structs themselves inline their moves many times over, which was half of the code of the files that use them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace vramtrack {

/// 0 .. count - 1 in the order of `less`, which compares two of them. Equal ones keep their order.
std::vector<std::uint32_t> sorted_indices(std::size_t count,
                                          const std::function<bool(std::uint32_t, std::uint32_t)>& less);

/// Sorts `all` as std::stable_sort does. For structs of a dozen bytes or more; numbers and pointers are better sorted
/// with std::sort.
template <class T, class Less>
void order(std::vector<T>& all, const Less& less) {
  if (all.size() < 2) return;
  const auto indices =
      sorted_indices(all.size(), [&](std::uint32_t a, std::uint32_t b) { return less(all[a], all[b]); });
  std::vector<T> sorted;
  sorted.reserve(all.size());
  for (const std::uint32_t index : indices) sorted.push_back(std::move(all[index]));
  all = std::move(sorted);
}

}  // namespace vramtrack
