#include "gate/signed_rank.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace vramtrack::gate {
namespace {

// Tables of the signed-rank test (Hollander & Wolfe, Nonparametric Statistical Methods, table A.4):
// n = 10: P(W <= 8) = 0.0244, P(W <= 3) = 0.0049; n = 5: P(W <= 0) = 1/32.
TEST(SignedRank, HasTheCriticalValuesOfTheTables) {
  EXPECT_EQ(signed_rank_critical(10, 0.025), 8u);
  EXPECT_EQ(signed_rank_critical(10, 0.005), 3u);
  EXPECT_EQ(signed_rank_critical(5, 1.0 / 32), 0u);
  EXPECT_EQ(signed_rank_critical(20, 0.025), 52u);
  EXPECT_EQ(signed_rank_critical(5, 0.01), std::nullopt);
  EXPECT_EQ(signed_rank_critical(2, 1), 3u);
}

TEST(SignedRank, WalshAveragesAndCentreByHand) {
  const std::array values{3.0, 1.0, 8.0};
  const auto walsh = walsh_averages(values);
  EXPECT_EQ(walsh, (std::vector<double>{1, 2, 3, 4.5, 5.5, 8}));
  EXPECT_DOUBLE_EQ(hodges_lehmann(walsh), 3.75);
}

TEST(SignedRank, BoundsOfFiveValuesAreTheirExtremes) {
  const std::array values{5.0, 1.0, 2.0, 4.0, 3.0};
  const auto walsh = walsh_averages(values);
  EXPECT_EQ(lower_bound_of_centre(walsh, 5, 1.0 / 32), 1.0);
  EXPECT_EQ(upper_bound_of_centre(walsh, 5, 1.0 / 32), 5.0);
  EXPECT_EQ(lower_bound_of_centre(walsh, 5, 1.0 / 33), std::nullopt);
}

/// The bound is the inverse of the test: its coverage for a symmetric distribution with no mean is as stated.
TEST(SignedRank, LowerBoundIsWrongAsOftenAsStated) {
  std::mt19937_64 random(7);
  std::cauchy_distribution<double> cauchy(10, 3);
  const int runs = 20000;
  int wrong = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> values(12);
    for (double& v : values) v = cauchy(random);
    wrong += lower_bound_of_centre(walsh_averages(values), values.size(), 0.01).value() > 10;
  }
  EXPECT_LE(wrong, 0.01 * runs + 4 * std::sqrt(0.01 * runs));
  EXPECT_GE(wrong, 0.5 * 0.01 * runs);
}

}  // namespace
}  // namespace vramtrack::gate
