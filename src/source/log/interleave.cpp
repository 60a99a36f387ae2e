#include "source/log/interleave.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace vramtrack {
namespace {

constexpr std::size_t kMostSeries = 16;
/// With n series in turn, the path over every n-th row is at least this many times shorter than the path over all rows.
/// With one series it is not: a trend makes it longer, and noise leaves it the same. With one series that swings with a
/// period of n rows it may be shorter, but only by this much if it jumps between as many levels as the period has rows.
constexpr double kShorter = 8;

/// Whether the first `n` levels only rise, or only fall, but for one step back, however the round is turned: those of
/// one series that climbs and begins anew. Levels of n GPUs have such an order by chance in 2 n of n! cases, 1 in 60
/// for six; fewer say nothing.
bool is_sawtooth(std::span<const double> values, std::size_t n) {
  constexpr std::size_t kFewest = 6;
  if (n < kFewest) return false;
  std::size_t rises = 0;
  std::size_t falls = 0;
  for (std::size_t i = 0; i < n; ++i) {
    rises += values[(i + 1) % n] > values[i] ? 1U : 0U;
    falls += values[(i + 1) % n] < values[i] ? 1U : 0U;
  }
  return rises == 1 || falls == 1;
}

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
    if (by_one > kShorter * way(n)) return is_sawtooth(values, n) ? 1 : n;
  return 1;
}

namespace {

/// The share of the gaps between `times_s` that are about as long as the median gap, or as the gap before them: two
/// series that cross may take each other's path there, and have each other's period from then on.
double evenness(const std::vector<double>& times_s) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times_s.size(); ++i) gaps.push_back(times_s[i] - times_s[i - 1]);
  if (gaps.empty()) return 0;
  const auto alike = [](double gap, double other) {
    constexpr double kAbout = 0.2;
    return std::abs(gap - other) <= kAbout * std::abs(other);
  };
  std::size_t as_before = 0;
  for (std::size_t i = 1; i < gaps.size(); ++i) as_before += alike(gaps[i], gaps[i - 1]) ? 1U : 0U;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  const double median = *middle;
  const auto even = std::count_if(gaps.begin(), gaps.end(), [&](double gap) { return alike(gap, median); });
  return static_cast<double>(std::max(as_before, static_cast<std::size_t>(even))) / static_cast<double>(gaps.size());
}

}  // namespace

bool are_merged(std::span<const double> times_s, std::span<const double> values) {
  constexpr std::size_t kFewest = 32;
  constexpr double kEven = 0.8;
  constexpr double kUneven = 0.6;
  if (values.size() < kFewest || values.size() != times_s.size()) return false;
  double by_one = 0;
  double longest = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double step = std::abs(values[i] - values[i - 1]);
    by_one += step;
    longest = std::max(longest, step);
  }
  struct Path {
    double last = 0;
    double way = 0;
    std::vector<double> times_s;
  };
  std::array<Path, 2> paths;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    const bool second_is_nearer = paths[1].times_s.empty()
                                      ? !paths[0].times_s.empty() && std::abs(v - paths[0].last) > longest / 2
                                      : std::abs(v - paths[1].last) < std::abs(v - paths[0].last);
    Path& path = paths[second_is_nearer ? 1 : 0];
    if (!path.times_s.empty()) path.way += std::abs(v - path.last);
    path.last = v;
    path.times_s.push_back(times_s[i]);
  }
  if (std::min(paths[0].times_s.size(), paths[1].times_s.size()) * 8 < values.size()) return false;
  if (by_one <= kShorter * (paths[0].way + paths[1].way)) return false;
  return evenness(paths[0].times_s) >= kEven && evenness(paths[1].times_s) >= kEven &&
         evenness({times_s.begin(), times_s.end()}) <= kUneven;
}

}  // namespace vramtrack
