#include "gate/shape.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/median.hpp"
#include "core/moments.hpp"
#include "core/statistics.hpp"
#include "gate/signed_rank.hpp"

namespace vramtrack::gate {
namespace {

constexpr double kOneSidedZ = 3.1;      ///< quantile of the normal distribution at 1 - 1e-3
constexpr double kSigmaOfMad = 1.4826;  ///< the ratio for a normal distribution
constexpr double kPerhapsSlowing = 0.85;
constexpr double kVarianceOfCentre = 1.05;  ///< of Hodges-Lehmann's estimate, relative to a normal mean
constexpr double kHardlySlowing = 0.95;
constexpr std::size_t kLongestPause = 16;  ///< in iterations; a shorter pause never counts as the end of growth

/// The smallest (`least`) or largest value of each stretch of `length` values, at the stretch's beginning; there are
/// n - length + 1 of them.
template <typename Better>
std::vector<double> best_of_stretches(std::span<const double> y, std::size_t length, Better better) {
  std::vector<double> best;
  std::vector<std::size_t> candidates;  // a queue that starts at `front`: each later one is worse
  std::size_t front = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    while (candidates.size() > front && !better(y[candidates.back()], y[i])) candidates.pop_back();
    candidates.push_back(i);
    if (candidates[front] + length <= i) ++front;
    if (i + 1 >= length) best.push_back(y[candidates[front]]);
  }
  return best;
}

}  // namespace

std::vector<double> levels_of(std::span<const double> y) {
  std::vector<double> levels;
  for (std::size_t i = 0; i + 2 < y.size(); ++i) levels.push_back(median_of({y[i], y[i + 1], y[i + 2]}));
  return levels;
}

Fall largest_fall(std::span<const double> levels) {
  Fall fall;
  double least = INFINITY;
  double most = -INFINITY;
  for (const double level : levels) {
    least = std::min(least, level);
    most = std::max(most, level);
    fall.largest = std::max(fall.largest, most - level);
  }
  fall.range = most - least;
  return fall;
}

std::vector<std::size_t> falls_of(std::span<const double> levels, double enough) {
  std::vector<std::size_t> falls;
  double most = -INFINITY;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    most = std::max(most, levels[i]);
    if (most - levels[i] < enough) continue;
    // A fall that spans several iterations counts as one.
    if (!falls.empty() && falls.back() + 1 == i)
      falls.back() = i;
    else
      falls.push_back(i);
    most = levels[i];
  }
  return falls;
}

std::vector<double> floor_of(std::vector<double> levels) {
  for (std::size_t i = levels.size(); i-- > 1;) levels[i - 1] = std::min(levels[i - 1], levels[i]);
  return levels;
}

std::size_t had_its_time(std::span<const double> levels, double enough) {
  const std::vector<std::size_t> falls = falls_of(levels, enough);
  if (falls.empty()) return levels.size();
  std::size_t longest = falls.front();
  for (std::size_t i = 1; i < falls.size(); ++i) longest = std::max(longest, falls[i] - falls[i - 1]);
  return levels.size() - falls.back() > longest ? levels.size() : falls.back() + 1;
}

std::vector<double> without_what_is_held_for_less(std::span<const double> y, std::size_t length) {
  if (length < 2 || y.size() < 2 * length) return {y.begin(), y.end()};
  // At the ends, stretches extend beyond the series, so the outermost values are repeated.
  std::vector<double> wider(length - 1, y.front());
  wider.insert(wider.end(), y.begin(), y.end());
  wider.insert(wider.end(), length - 1, y.back());
  const auto least = best_of_stretches(wider, length, [](double a, double b) { return a < b; });
  return best_of_stretches(least, length, [](double a, double b) { return a > b; });
}

Stretch stretch_of(std::span<const double> y, std::size_t least) {
  const std::vector<double> levels = levels_of(y);
  const double enough = kGivenBack * largest_fall(levels).range;
  std::vector<Stretch> all{{0, y.size()}};
  double lowest = INFINITY;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (enough > 0 && levels[i] <= lowest - enough) {
      // The fall itself may span a few iterations, which belong to neither stretch.
      if (i > all.back().begin + 3) {
        all.back().end = i;
        all.push_back({i, y.size()});
      } else {
        all.back().begin = i;
      }
    }
    lowest = std::min(lowest, levels[i]);
  }
  const auto length = [](const Stretch& s) { return s.end - s.begin; };
  if (length(all.back()) >= least) return all.back();
  return *std::max_element(all.begin(), all.end(),
                           [&](const Stretch& a, const Stretch& b) { return length(a) < length(b); });
}

NetGrowth net_growth(std::span<const double> y, std::size_t blocks) {
  NetGrowth net;
  const std::size_t length = y.size() / blocks;
  const std::size_t skipped = y.size() - length * blocks;
  std::vector<double> steps;
  double before = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto block = y.subspan(skipped + b * length, length);
    const double level = median_of({block.begin(), block.end()});
    if (b > 0) steps.push_back(level - before);
    before = level;
  }
  if (steps.empty()) return net;
  for (const double step : steps) net.bytes += step;
  const auto largest = std::max_element(steps.begin(), steps.end());
  double next = 0;
  for (auto step = steps.begin(); step != steps.end(); ++step)
    if (step != largest) next = std::max(next, std::abs(*step));
  if (*largest > 3 * next) net.single_step_bytes = *largest;
  const double usual = median_of(steps);
  std::vector<double> deviations;
  for (const double step : steps) deviations.push_back(std::abs(step - usual));
  const double sigma = kSigmaOfMad * median_of(deviations) * std::sqrt(static_cast<double>(steps.size()));
  net.high_bytes = net.bytes + kOneSidedZ * sigma;
  return net;
}

bool has_stopped(std::span<const double> y, std::span<const double> growth, double centre) {
  // Judged by its blocks: of 24, the last two are the two lowest by chance in one case out of 276.
  double lowest_before = INFINITY;
  for (std::size_t i = 0; i + 2 < growth.size(); ++i) lowest_before = std::min(lowest_before, growth[i]);
  const auto last = growth.last(std::min<std::size_t>(2, growth.size()));
  if (growth.size() > 8 &&
      std::all_of(last.begin(), last.end(), [&](double d) { return d <= 0.5 * centre && d < lowest_before; }))
    return true;
  // Judged by its new highs.
  const std::vector<double> levels = levels_of(y);
  std::size_t longest = 0;
  std::size_t since = 0;
  double most = -INFINITY;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i] <= most) continue;
    if (most > -INFINITY) longest = std::max(longest, i - since);
    most = levels[i];
    since = i;
  }
  return levels.size() - since > std::max(kLongestPause, 2 * longest);
}

bool slows_down(std::span<const double> y, std::span<const double> growth, double late_to_early) {
  if (is_slowing(1, late_to_early)) return true;
  if (late_to_early >= kHardlySlowing) return false;
  Moments early;
  Moments late;
  for (std::size_t i = 1; i < y.size(); ++i) (i <= y.size() / 2 ? early : late).add(0, y[i] - y[i - 1]);
  const double variance = early.yy / (early.n * early.n) + late.yy / (late.n * late.n);
  const double fewer = (early.mean_y - late.mean_y) / std::sqrt(variance);  // infinite without noise
  if (fewer > kOneSidedZ) return true;
  if (late_to_early >= kPerhapsSlowing) return false;
  if (fewer > kSlowingZ) return true;

  const auto later = growth.last(growth.size() - growth.size() / 3);
  const std::int64_t s = kendall_score(later.size(), [&](std::size_t i) { return later[i]; });
  return static_cast<double>(s) < -kSlowingZ * std::sqrt(kendall_variance(static_cast<double>(later.size())));
}

bool may_slow_down(std::span<const double> growth, double share, double z) {
  const std::size_t half = growth.size() / 2;
  const auto centre_and_variance = [](std::span<const double> values) {
    const double centre = hodges_lehmann(walsh_averages(values));
    std::vector<double> deviations;
    for (const double value : values) deviations.push_back(std::abs(value - centre));
    const double sigma = kSigmaOfMad * median_of(deviations);
    return std::pair(centre, kVarianceOfCentre * sigma * sigma / static_cast<double>(values.size()));
  };
  const auto [early, early_variance] = centre_and_variance(growth.first(half));
  const auto [late, late_variance] = centre_and_variance(growth.last(half));
  return late - share * early < z * std::sqrt(late_variance + share * share * early_variance);
}

double growth_of_the_least(std::span<const double> levels) {
  const std::size_t third = levels.size() / 3;
  if (third == 0) return 0;
  const auto first = levels.first(third);
  const auto last = levels.last(third);
  return *std::min_element(last.begin(), last.end()) - *std::min_element(first.begin(), first.end());
}

}  // namespace vramtrack::gate
