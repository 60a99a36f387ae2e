#include "core/kendall.hpp"

#include <algorithm>
#include <cmath>
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

double mann_kendall_p(std::span<const double> values) {
  const std::int64_t score = kendall_score(values.size(), [&](std::size_t i) { return values[i]; });
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  double variance = kendall_variance(static_cast<double>(values.size()));
  for (auto it = sorted.begin(); it != sorted.end();) {
    const auto end = std::upper_bound(it, sorted.end(), *it);
    variance -= kendall_variance(static_cast<double>(end - it));
    it = end;
  }
  if (variance <= 0 || score <= 0) return 1;
  // 1: the correction for continuity.
  return 0.5 * std::erfc(static_cast<double>(score - 1) / std::sqrt(2 * variance));
}

}  // namespace vramtrack
