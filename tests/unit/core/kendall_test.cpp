#include "core/kendall.hpp"

#include <gtest/gtest.h>

#include <array>

namespace vramtrack {
namespace {

TEST(Kendall, ScoreCountsPairs) {
  const std::array values = {1, 3, 2, 2};
  EXPECT_EQ(kendall_score(values.size(), [&](std::size_t i) { return values[i]; }), 3 - 2)
      << "the tie counts for neither";
  EXPECT_EQ(kendall_score(0, [](std::size_t) { return 0; }), 0);
}

TEST(Kendall, ExactChancesOfOrders) {
  // Kendall 1975, table 1: n = 4.
  EXPECT_NEAR(kendall_p(4, 6), 1.0 / 24, 1e-12);
  EXPECT_NEAR(kendall_p(4, 4), 4.0 / 24, 1e-12);
  EXPECT_NEAR(kendall_p(4, 0), 15.0 / 24, 1e-12);
  EXPECT_NEAR(kendall_p(4, -6), 1.0, 1e-12);
  EXPECT_NEAR(kendall_p(10, 45), 1.0 / 3628800, 1e-15);
}

TEST(Kendall, VarianceIsThatOfTheExactChances) {
  double variance = 0;
  for (std::int64_t score = -15; score <= 15; ++score)  // 6 values, 15 pairs
    variance += static_cast<double>(score * score) * (kendall_p(6, score) - kendall_p(6, score + 1));
  EXPECT_NEAR(kendall_variance(6), variance, 1e-9);
}

}  // namespace
}  // namespace vramtrack
