#include "gate/signed_rank.hpp"

#include <algorithm>
#include <cmath>

#include "core/median.hpp"

namespace vramtrack::gate {

std::optional<std::size_t> signed_rank_critical(std::size_t n, double probability) {
  const std::size_t most = n * (n + 1) / 2;
  std::vector<double> subsets(most + 1, 0.0);  // how many subsets of 1..rank have this sum; exact below 2^53
  subsets[0] = 1;
  for (std::size_t rank = 1; rank <= n; ++rank)
    for (std::size_t sum = most; sum >= rank; --sum) subsets[sum] += subsets[sum - rank];
  const double allowed = probability * std::ldexp(1.0, static_cast<int>(n));
  double total = 0;
  for (std::size_t sum = 0; sum <= most; ++sum) {
    total += subsets[sum];
    if (total > allowed) return sum == 0 ? std::nullopt : std::optional<std::size_t>(sum - 1);
  }
  return most;
}

std::vector<double> walsh_averages(std::span<const double> values) {
  std::vector<double> walsh;
  walsh.reserve(values.size() * (values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i; j < values.size(); ++j) walsh.push_back(0.5 * (values[i] + values[j]));
  std::sort(walsh.begin(), walsh.end());
  return walsh;
}

double hodges_lehmann(std::span<const double> walsh) {
  return median_of_sorted(walsh);
}

// W, the rank sum of the values below x, is the number of Walsh averages below x (Tukey 1949). So W <= c is rejected if
// and only if fewer than c + 1 averages are at or below x, that is, if the average with index c is above x. An average
// that equals x counts against rejection, which makes ties conservative.
std::optional<double> lower_bound_of_centre(std::span<const double> walsh, std::size_t n, double probability) {
  const auto critical = signed_rank_critical(n, probability);
  if (!critical || *critical >= walsh.size()) return std::nullopt;
  return walsh[*critical];
}

std::optional<double> upper_bound_of_centre(std::span<const double> walsh, std::size_t n, double probability) {
  const auto critical = signed_rank_critical(n, probability);
  if (!critical || *critical >= walsh.size()) return std::nullopt;
  return walsh[walsh.size() - 1 - *critical];
}

}  // namespace vramtrack::gate
