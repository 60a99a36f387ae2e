#include "core/kendall.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace vramtrack {

double kendall_p(std::size_t n, std::int64_t score) {
  // Chances of each number of discordant pairs, one more value at a time (Kendall 1975, chapter 5).
  std::vector<double> chances = {1.0};
  for (std::size_t i = 2; i <= n; ++i) {
    std::vector<double> next(chances.size() + i - 1, 0.0);
    for (std::size_t d = 0; d < chances.size(); ++d)
      for (std::size_t more = 0; more < i; ++more) next[d + more] += chances[d] / static_cast<double>(i);
    chances = std::move(next);
  }
  const auto pairs = static_cast<std::int64_t>(n * (n - std::min<std::size_t>(n, 1)) / 2);
  double p = 0;
  // A score of pairs - 2 * discordant or more.
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(chances.size()) && pairs - 2 * d >= score; ++d)
    p += chances[static_cast<std::size_t>(d)];
  return std::min(p, 1.0);
}

}  // namespace vramtrack
