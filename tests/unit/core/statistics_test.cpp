#include "core/statistics.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace vramtrack {
namespace {

TEST(Statistics, NormalTableValues) {  // Abramowitz & Stegun 1964, table 26.1
  EXPECT_NEAR(normal_cdf(0), 0.5, 1e-15);
  EXPECT_NEAR(normal_cdf(1.96), 0.975002104851780, 1e-14);
  EXPECT_NEAR(normal_cdf(-3), 0.00134989803163, 1e-14);
  EXPECT_NEAR(normal_cdf(-10) * 1e24, 7.619853024160527, 1e-11) << "the tail keeps its digits";
  EXPECT_NEAR(normal_pdf(0), 0.398942280401433, 1e-14);
  EXPECT_NEAR(normal_pdf(-1.5), 0.129517595665892, 1e-14);
}

TEST(Statistics, StudentsTableValues) {
  EXPECT_NEAR(students_t_cdf(0, 5), 0.5, 1e-12);
  EXPECT_NEAR(students_t_cdf(6.313752, 1), 0.95, 1e-6);
  EXPECT_NEAR(students_t_cdf(2.570582, 5), 0.975, 1e-6);
  EXPECT_NEAR(students_t_cdf(-2.570582, 5), 0.025, 1e-6);
  EXPECT_NEAR(students_t_cdf(1.281552, 1e7), 0.90, 1e-6);
  EXPECT_NEAR(students_t_cdf(1, 1), 0.75, 1e-12);  // Cauchy: 1/2 + atan(1)/pi
}

TEST(Statistics, BinomialTableValues) {
  EXPECT_NEAR(binomial_cdf(3, 10, 0.5), 176.0 / 1024, 1e-14);
  EXPECT_NEAR(binomial_cdf(2, 10, 0.3), 0.3827827864, 1e-10);
  EXPECT_NEAR(binomial_cdf(10, 10, 0.5), 1, 1e-15);
  EXPECT_NEAR(binomial_cdf(0, 10'000, 1e-4), 0.36786104643297046, 1e-12);
}

TEST(Statistics, BetaBinomialByHand) {
  EXPECT_NEAR(beta_binomial_pmf(3, 7, 1, 1), 1.0 / 8, 1e-14) << "each number is equally likely";
  EXPECT_NEAR(beta_binomial_pmf(0, 2, 1, 19), 19.0 / 21, 1e-13);
  EXPECT_NEAR(beta_binomial_pmf(1, 2, 1, 19), 2.0 * 19 / (20 * 21), 1e-13);
  EXPECT_NEAR(beta_binomial_pmf(2, 2, 1, 19), 2.0 / (20 * 21), 1e-13);
}

TEST(Statistics, FishersOwnExamples) {
  // A lady's tea: all four of four cups, of eight: 1/70; three or more of four: 17/70.
  EXPECT_NEAR(fisher_exact_p(4, 4, 0, 4), 1.0 / 70, 1e-12);
  EXPECT_NEAR(fisher_exact_p(3, 4, 1, 4), 17.0 / 70, 1e-12);
  EXPECT_NEAR(fisher_exact_p(0, 4, 4, 4), 1, 1e-12);
  EXPECT_NEAR(fisher_exact_p(0, 0, 3, 5), 1, 1e-12);
  EXPECT_NEAR(fisher_exact_p(4, 4, 3, 3), 1, 1e-12) << "all have it";
  EXPECT_NEAR(fisher_exact_p(10, 13, 2, 17), 619.0 / 1330665, 1e-15) << "convicted twins";
  EXPECT_NEAR(fisher_exact_p(1, 1, 9, 199'999), 10.0 / 200'000, 1e-12);
}

TEST(Statistics, TheChanceOfARise) {
  EXPECT_NEAR(rising_order_p(5), 1.0 / 120, 1e-15);
  EXPECT_EQ(rising_order_p(1), 1);
  EXPECT_EQ(least_rising(0.01), 5U);
  EXPECT_EQ(least_rising(0.05), 4U);
  EXPECT_TRUE(is_growth(0.01, 0.01, 8, 8));
  EXPECT_FALSE(is_growth(0.011, 0.01, 8, 8));
  EXPECT_FALSE(is_growth(0.01, 0.01, 7, 8)) << "too small to matter";
  EXPECT_FALSE(is_growth(0.01, 0.01, 0, 0)) << "no rise";
  EXPECT_TRUE(is_slowing(10, 4.9));
  EXPECT_FALSE(is_slowing(10, 5));
}

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
  // Gilbert, "Statistical Methods for Environmental Pollution Monitoring", 1987, table A18: n = 10.
  EXPECT_NEAR(kendall_p(10, 11), 0.190, 5e-4);
  EXPECT_NEAR(kendall_p(10, 23), 0.023, 5e-4);
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
