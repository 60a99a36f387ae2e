#include "core/median.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace vramtrack {
namespace {

TEST(Median, OfAnOddNumberIsTheMiddle) {
  std::vector<double> values{5, 1, 4, 2, 3};
  EXPECT_EQ(median(values), 3);
  EXPECT_EQ(upper_median(std::span(values)), 3);
  EXPECT_EQ(median_of_sorted(std::vector<double>{1, 2, 9}), 2);
}

TEST(Median, OfAnEvenNumberEachSaysWhichOneItTakes) {
  std::vector<double> values{10, 1, 4, 2};
  EXPECT_EQ(median(values), 3);
  EXPECT_EQ(upper_median(std::span(values)), 4);
  EXPECT_EQ(median_of_sorted(std::vector<double>{1, 2, 4, 10}), 3);
}

TEST(Median, OfOneIsThatOne) {
  std::vector<std::int64_t> times{7};
  EXPECT_EQ(upper_median(std::span(times)), 7);
  EXPECT_EQ(median_of_sorted(std::vector<double>{7}), 7);
}

TEST(NthSmallest, IsThatOfTheSortedValuesAndPartsTheOthers) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> values(1 + random() % 300);
    // From all equal to all different: noise, sorted, and a pipe organ.
    const auto different = 1 + static_cast<int>(random() % 400);
    const unsigned kind = random() % 4;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto place = static_cast<int>(kind == 3 ? std::min(i, values.size() - i) : i);
      values[i] = (kind < 2 ? static_cast<int>(random() % 1000) : place) % different;
    }
    std::vector<int> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t at = random() % values.size();
    EXPECT_EQ(nth_smallest(std::span(values), at), sorted[at]);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(at);
    EXPECT_EQ(*middle, sorted[at]);
    EXPECT_TRUE(std::all_of(values.begin(), middle, [&](int value) { return value <= sorted[at]; }));
    EXPECT_TRUE(std::all_of(middle, values.end(), [&](int value) { return value >= sorted[at]; }));
    std::sort(values.begin(), values.end());
    EXPECT_EQ(values, sorted);
  }
}

}  // namespace
}  // namespace vramtrack
