#include "core/order.hpp"

#include <algorithm>
#include <numeric>

namespace vramtrack {

std::vector<std::uint32_t> sorted_indices(std::size_t count,
                                          const std::function<bool(std::uint32_t, std::uint32_t)>& less) {
  std::vector<std::uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), std::uint32_t{0});
  std::stable_sort(indices.begin(), indices.end(), [&](std::uint32_t a, std::uint32_t b) { return less(a, b); });
  return indices;
}

}  // namespace vramtrack
