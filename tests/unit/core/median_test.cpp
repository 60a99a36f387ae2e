#include "core/median.hpp"

#include <gtest/gtest.h>

#include <cstdint>
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

}  // namespace
}  // namespace vramtrack
