#include "core/kendall.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

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

TEST(Kendall, TheApproximationCountsTies) {
  const auto p_of = [](const std::vector<double>& values) { return mann_kendall_p(values); };
  // 10 values, all pairs rising: S = 45, variance 125, z = 44 / sqrt(125).
  EXPECT_NEAR(p_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 4.15e-5, 1e-7);
  // S = 5, variance 26/3 - 1 = 23/3, z = 4 / sqrt(23/3) = 1.4446.
  EXPECT_NEAR(p_of({1, 2, 2, 3}), 0.0743, 1e-4);
  EXPECT_EQ(p_of({3, 2, 1}), 1);
  EXPECT_EQ(p_of({1, 1, 1}), 1);
  EXPECT_EQ(p_of({}), 1);
}

}  // namespace
}  // namespace vramtrack
