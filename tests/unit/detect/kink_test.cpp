#include "detect/kink.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "core/units.hpp"
#include "detect/detector.hpp"
#include "kinked_growth.hpp"

namespace vramtrack {
namespace {

std::vector<double> times(std::size_t n) {
  std::vector<double> t(n);
  for (std::size_t i = 0; i < n; ++i) t[i] = 10.0 * static_cast<double>(i);
  return t;
}

TEST(BrokenLine, OfAKinkedLineIsThatLine) {
  const auto t = times(20);
  std::vector<double> y;
  for (const double s : t) y.push_back(5 + 0.5 * s + 3 * std::max(0.0, s - t[12]));
  const auto kink = broken_line(t, y);
  ASSERT_TRUE(kink);
  EXPECT_EQ(kink->at, 12U);
  EXPECT_NEAR(kink->early_slope_per_s, 0.5, 1e-9);
  EXPECT_NEAR(kink->late_slope_per_s, 3.5, 1e-9);
  EXPECT_NEAR(kink->squares, 0, 1e-9);
}

TEST(BrokenLine, WithAnotherKnotLeavesMore) {
  const auto t = times(20);
  std::vector<double> y;
  for (const double s : t) y.push_back(5 + 3 * std::max(0.0, s - 95));
  EXPECT_NEAR(squares_with_knot(t, y, 95), 0, 1e-9) << "between two points";
  const auto kink = broken_line(t, y);
  ASSERT_TRUE(kink);
  EXPECT_NEAR(squares_with_knot(t, y, t[kink->at]), kink->squares, 1e-9);
  EXPECT_GT(squares_with_knot(t, y, 50), 10 * kink->squares);
}

/// Uses the normal equations of 1, t and the hinge, made orthogonal one after another.
double least_squares(const std::vector<double>& t, const std::vector<double>& y, double knot_s) {
  std::vector<std::vector<long double>> basis(3, std::vector<long double>(t.size(), 1));
  std::vector<long double> left(y.begin(), y.end());
  for (std::size_t i = 0; i < t.size(); ++i) {
    basis[1][i] = t[i];
    basis[2][i] = std::max(0.0, t[i] - knot_s);
  }
  const auto take_out = [&](std::vector<long double>& of, const std::vector<long double>& along) {
    long double product = 0, size = 0;
    for (std::size_t i = 0; i < t.size(); ++i) product += of[i] * along[i], size += along[i] * along[i];
    for (std::size_t i = 0; i < t.size(); ++i) of[i] -= product / size * along[i];
  };
  for (std::size_t k = 0; k < basis.size(); ++k) {
    for (std::size_t before = 0; before < k; ++before) take_out(basis[k], basis[before]);
    take_out(left, basis[k]);
  }
  long double squares = 0;
  for (const long double rest : left) squares += rest * rest;
  return static_cast<double>(squares);
}

TEST(BrokenLine, LeavesTheLeastSquaresAtEveryKnot) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
    const std::size_t n = 5 + random() % 44;
    std::vector<double> t, y;
    for (std::size_t i = 0; i < n; ++i) {
      t.push_back((t.empty() ? between(0, 1e6) : t.back()) + between(1, 4000));
      y.push_back(2e10 + 1e4 * t.back() + between(-1e9, 1e9));
    }
    for (std::size_t knot = 2; knot + 3 <= n; ++knot) {
      const double expected = least_squares(t, y, t[knot]);
      EXPECT_NEAR(squares_with_knot(t, y, t[knot]), expected, 1e-6 * expected) << n << " points, knot " << knot;
    }
  }
}

TEST(BrokenLine, NeedsThreePointsOnEachSide) {
  EXPECT_FALSE(broken_line(times(4), {0, 0, 1, 2}));
  EXPECT_TRUE(broken_line(times(5), {0, 0, 0, 1, 2}));
}

TEST(BrokenLine, MoreParametersMustEarnTheirPlace) {
  EXPECT_TRUE(explains_better(1e6, 1e8, 1, 20, 4));
  EXPECT_FALSE(explains_better(9e7, 1e8, 1, 20, 4));
  EXPECT_FALSE(explains_better(1e-9, 1e-3, 1, 20, 4)) << "nothing is left to explain";
}

/// A series that holds `base`, then rises at a constant rate to the limit: the forecast is headroom / rate at every
/// sample, although the windows of coarser scales reach back beyond the moment at which the growth began.
RC_GTEST_PROP(KinkedLines, AreForetoldByTheirLaterRate, ()) {
  const KinkedGrowth growth;
  const auto& [flat_s, life_s, period_s, base_gib, limit_gib] = growth;
  const auto judge = find_detector("judge")->make(DetectionConfig{}, kSecondsAndBytes);
  judge->set_limit(limit_gib * kGiB);
  int looks = 0;
  for (double s = 0; s < flat_s + life_s; s += period_s) {
    judge->observe(Timestamp(from_seconds(1.7e9 + s)), growth.used_bytes(s));
    // Earlier, samples are so few that the position of each one in its bucket matters.
    if (!judge->alerting() || std::fmod(s, 120) >= period_s || s - flat_s < 20 * period_s) continue;
    const auto foretold = judge->finding().oom_in_s;
    if (!foretold) continue;
    ++looks;
    const double left = flat_s + life_s - s;
    RC_LOG() << fmt::format("flat {} life {} period {} base {} limit {} at {} s: foretold {:.0f} s, left {:.0f} s\n",
                            flat_s, life_s, period_s, base_gib, limit_gib, s, foretold->mid, left);
    RC_ASSERT(std::abs(foretold->mid - left) <= std::max(0.05 * left, 2 * period_s));
  }
  RC_TAG(std::string(looks > 0 ? "foretold" : "never alerted"));
}

}  // namespace
}  // namespace vramtrack
