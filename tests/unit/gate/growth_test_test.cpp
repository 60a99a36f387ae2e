#include "gate/growth_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "series.hpp"

namespace vramtrack::gate {
namespace {

using made::kMib;
using made::Random;

GrowthLimits limit_mib(double mib) {
  return {mib * kMib, 1e-4, 4};
}

TEST(GrowthTest, ALeakWithoutNoiseIsMeasuredExactly) {
  std::vector<double> y(128, 1e9);
  made::add_leak(y, 0.5);
  const GrowthResult r = test_growth(y, limit_mib(0.2));
  EXPECT_EQ(r.outcome, Outcome::fails);
  EXPECT_NEAR(r.growth_bytes / kMib, 0.5, 1e-9);
  EXPECT_NEAR(r.low_bytes / kMib, 0.5, 1e-9);
  EXPECT_THAT(r.because, testing::HasSubstr("grows 0.50 MiB/iteration"));
  EXPECT_EQ(test_growth(y, limit_mib(0.5)).outcome, Outcome::passes) << "growth of just the limit is allowed";
}

TEST(GrowthTest, AConstantSeriesIsSettled) {
  const std::vector<double> y(100, 3e9);
  const GrowthResult r = test_growth(y, limit_mib(0));
  EXPECT_EQ(r.outcome, Outcome::passes);
  EXPECT_TRUE(r.settled);
  EXPECT_EQ(r.growth_bytes, 0);
}

TEST(GrowthTest, TooFewIterationsSayHowManyItTakes) {
  std::vector<double> y(40, 1e9);
  made::add_leak(y, 5);
  const GrowthResult r = test_growth(y, limit_mib(0.2));
  EXPECT_EQ(r.outcome, Outcome::too_short);
  EXPECT_EQ(least_iterations(limit_mib(0.2)), 54u);
  EXPECT_THAT(r.because, testing::HasSubstr("at least 54 iterations after warm-up"));
  EXPECT_EQ(test_growth({}, limit_mib(0.2)).outcome, Outcome::too_short);
}

TEST(GrowthTest, WarmUpEndsWhereItEnds) {
  std::vector<double> flat_after(400, 0);
  made::add_ramp(flat_after, 4000, 100);
  EXPECT_NEAR(static_cast<double>(find_warm_up(flat_after)), 100, 2);

  std::vector<double> first_only(200, 2e9);
  first_only[0] = 1e9;
  EXPECT_EQ(find_warm_up(first_only), 1u);

  std::vector<double> leak(200, 1e9);
  made::add_leak(leak, 2);
  EXPECT_EQ(find_warm_up(leak), 0u) << "a straight line has no bend";

  std::vector<double> late(200, 1e9);
  made::add_leak(late, 2, 50);
  EXPECT_EQ(test_growth(late, limit_mib(0.2)).outcome, Outcome::fails) << "a leak that begins late";
}

TEST(GrowthTest, ALeakBehindAWarmUpIsFound) {
  Random random(1);
  std::vector<double> y(400, 1e9);
  made::add_warm_up(y, 2000, 15);
  made::add_leak(y, 0.5);
  made::add_jitter(y, 0.2, random);
  const GrowthResult r = test_growth(y, limit_mib(0.2));
  EXPECT_EQ(r.outcome, Outcome::fails) << r.because;
  EXPECT_NEAR(r.growth_bytes / kMib, 0.5, 0.05);
  EXPECT_GT(r.warm_up_iterations, 15u);
}

TEST(GrowthTest, AWarmUpThatGoesOnIsNoFailure) {
  std::vector<double> y(400, 1e9);
  made::add_warm_up(y, 4000, 80);
  EXPECT_EQ(test_growth(y, limit_mib(0.2)).outcome, Outcome::warming_up);
}

/// As many cache steps as spared blocks, all within one half, are not a leak, whatever their size.
TEST(GrowthTest, CacheStepsAreNoLeak) {
  std::vector<double> y(240, 1e9);
  for (const std::size_t at : {130U, 150U, 170U, 190U})
    made::add(y, [at](std::size_t i) { return i >= at ? 512 * kMib : 0.0; });
  EXPECT_EQ(test_growth(y, limit_mib(0)).outcome, Outcome::inconclusive) << "2 GiB more, of a limit of nothing";
}

TEST(GrowthTest, ValuesThatAreNoNumbersAreSkipped) {
  std::vector<double> y(128, 1e9);
  made::add_leak(y, 0.5);
  y[0] = std::numeric_limits<double>::quiet_NaN();
  y[64] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(test_growth(y, limit_mib(0.2)).outcome, Outcome::fails);
}

RC_GTEST_PROP(GrowthTestProperties, ShiftInvariantAndScaleEquivariant, ()) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto n = *rc::gen::inRange<std::size_t>(60, 300);
  const double scale = *rc::gen::element(0.25, 2.0, 1024.0);
  std::vector<double> y(n, 1e9);
  made::add_jitter(y, 1, random);
  made::add_leak(y, 0.5);
  std::vector<double> z(y);
  for (double& v : z) v = v * scale;
  const GrowthResult a = test_growth(y, limit_mib(0.2));
  const GrowthResult b = test_growth(z, {0.2 * kMib * scale, 1e-4, 4});
  RC_ASSERT(a.outcome == b.outcome);
  RC_ASSERT(std::abs(a.growth_bytes * scale - b.growth_bytes) <= 1e-6 * std::abs(b.growth_bytes) + 1e-3);
  if (a.blocks > 0 && a.outcome != Outcome::too_short) {
    RC_ASSERT(a.low_bytes <= a.growth_bytes);
    RC_ASSERT(a.growth_bytes <= a.high_bytes);
  }
}

RC_GTEST_PROP(GrowthTestProperties, AnythingAtAllIsTakenIn, ()) {
  const auto y = *rc::gen::arbitrary<std::vector<double>>();
  const GrowthResult r = test_growth(y, limit_mib(0.2));
  RC_ASSERT(r.iterations == y.size());
  RC_ASSERT(r.warm_up_iterations <= y.size() / 2);
}

TEST(ShortGrowth, RisesThroughoutByWhatMatters) {
  const std::vector<double> line{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const ShortGrowth growth = test_short_growth(line, 1e-3, 9, 9);
  EXPECT_TRUE(growth.grows);
  EXPECT_NEAR(growth.p_value, 4.15e-5, 1e-7) << "S = 45, variance 125, z = 44 / sqrt(125)";
  EXPECT_FALSE(test_short_growth(line, 1e-5, 9, 9).grows) << "at a lower error rate";
  EXPECT_FALSE(test_short_growth(line, 1e-3, 8, 9).grows) << "less than what matters";
}

TEST(ShortGrowth, NotWhatSlowsDownOrReturns) {
  const std::vector<double> fills{0, 10, 20, 30, 31, 32, 33, 34, 35};
  EXPECT_LT(test_short_growth(fills, 1e-3, 35, 1).p_value, 1e-3);
  EXPECT_FALSE(test_short_growth(fills, 1e-3, 35, 1).grows);
  const std::vector<double> returns{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0.5};
  EXPECT_LT(test_short_growth(returns, 5e-3, 10, 1).p_value, 5e-3);
  EXPECT_FALSE(test_short_growth(returns, 5e-3, 10, 1).grows);
}

TEST(GrowthTest, TheWordsNameTheUnitAndTheStatedErrorRate) {
  std::vector<double> y(128, 1e9);
  made::add_leak(y, 0.5);
  GrowthLimits limits = limit_mib(0.2);
  limits.error_rate = 1e-4 / 3;
  EXPECT_THAT(
      test_growth(y, limits).because,
      testing::StartsWith("grows 0.50 MiB/iteration (at least 0.50 MiB/iteration at error rate 3.33333e-05); "));
  limits.unit = "step";
  limits.stated_error_rate = "1e-4 over 3 looks";
  EXPECT_THAT(test_growth(y, limits).because,
              testing::StartsWith("grows 0.50 MiB/step (at least 0.50 MiB/step at error rate 1e-4 over 3 looks); "
                                  "the limit is 0.20 MiB/step; "));
}

TEST(GrowthTest, ErrorRatesInWords) {
  EXPECT_EQ(error_rate_words(1e-4), "1e-4");
  EXPECT_EQ(error_rate_words(0.05), "5e-2");
  EXPECT_EQ(error_rate_words(2.5e-6), "2.5e-6");
}

TEST(GrowthLimit, ReadsWhatPeopleWrite) {
  EXPECT_NEAR(parse_growth_limit("0.2 MiB/iter").value(), 0.2 * kMib, 1);
  EXPECT_EQ(parse_growth_limit("512KiB").value(), 512 * 1024);
  EXPECT_EQ(parse_growth_limit("1MiB / step").value(), kMib);
  EXPECT_EQ(parse_growth_limit("0/iter").value(), 0);
  EXPECT_EQ(parse_growth_limit("0").value(), 0);
  EXPECT_THAT(parse_growth_limit("0.2/iter").error().message, ::testing::HasSubstr("the unit is missing"));
  for (const char* wrong : {"", "MiB/iter", "1 parsec/iter", "1MiB/", "-1 MiB/iter"}) {
    const auto limit = parse_growth_limit(wrong);
    ASSERT_FALSE(limit) << wrong;
    EXPECT_THAT(limit.error().message, testing::HasSubstr("0.2 MiB/iter"));
  }
}

}  // namespace
}  // namespace vramtrack::gate
