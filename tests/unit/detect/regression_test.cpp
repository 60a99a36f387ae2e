#include "detect/regression.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "detect/trend_window.hpp"

namespace vramtrack {
namespace {

struct Point {
  double t_s;
  double y;
};

Moments moments_of(const std::vector<Point>& points) {
  Moments m;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0) m.add_step(points[i].t_s - points[i - 1].t_s, points[i].y - points[i - 1].y);
    m.add(points[i].t_s, points[i].y);
  }
  return m;
}

// By hand: t = 1..5, y = 2 4 5 4 5. means 3 and 4; Stt 10, Sty 6, Syy 6; slope 0.6; R2 = 36/60 = 0.6.
TEST(Regression, TheTextbookLine) {
  const Fit fit = fit_line(moments_of({{1, 2}, {2, 4}, {3, 5}, {4, 4}, {5, 5}}));
  EXPECT_DOUBLE_EQ(fit.slope_per_s, 0.6);
  EXPECT_DOUBLE_EQ(fit.r_squared, 0.6);
  EXPECT_DOUBLE_EQ(fit.at(0), 2.2);
  // Residuals -0.8 0.6 1.0 -0.6 -0.2: squares 2.4, their steps 1.4 0.4 -1.6 0.4 have squares 4.84;
  // 1 - 4.84 / 4.8 < 0, so no correction: five samples, three degrees, se = sqrt(2.4 / 3 / 10).
  EXPECT_DOUBLE_EQ(fit.autocorrelation, 0);
  EXPECT_DOUBLE_EQ(fit.effective_n, 5);
  EXPECT_NEAR(fit.slope_se, 0.282843, 1e-6);
  EXPECT_NEAR(fit.p_value, 0.124027 / 2, 1e-5);  // t = 2.12132 on 3 degrees, two-sided p 0.1240
}

TEST(Regression, ValuesAtHandGiveTheSameLine) {
  const std::vector<double> t{1, 2, 3, 4, 5};
  const std::vector<double> y{2, 4, 5, 4, 5};
  const Fit fit = fit_slope(vramtrack::moments_of(t, y));
  EXPECT_DOUBLE_EQ(fit.slope_per_s, 0.6);
  EXPECT_DOUBLE_EQ(fit.r_squared, 0.6);
  EXPECT_NEAR(fit.residual(1, 2), -0.8, 1e-15);
  EXPECT_NEAR(fit.residual(3, 5), 1.0, 1e-15);
  // Far from the origin, like times since 1970.
  const Fit far =
      fit_slope(vramtrack::moments_of(std::vector<double>{1e9, 1e9 + 1, 1e9 + 2}, std::vector<double>{3, 5, 7}));
  EXPECT_DOUBLE_EQ(far.slope_per_s, 2);
  EXPECT_DOUBLE_EQ(far.r_squared, 1);
}

// Residuals +1 +1 -1 -1 +1 +1 ... persist: half of the steps are 0, the others 2 or -2.
TEST(Regression, PersistentResidualsCountAsFewerSamples) {
  std::vector<Point> points;
  for (int i = 0; i < 400; ++i) points.push_back({static_cast<double>(i), (i / 2) % 2 == 0 ? 1.0 : -1.0});
  const Fit pairs = fit_line(moments_of(points));
  EXPECT_NEAR(pairs.autocorrelation, 0, 0.02);  // neighbours agree in half of the cases
  points.clear();
  for (int i = 0; i < 400; ++i) points.push_back({static_cast<double>(i), (i / 10) % 2 == 0 ? 1.0 : -1.0});
  const Fit tens = fit_line(moments_of(points));
  EXPECT_NEAR(tens.autocorrelation, 0.8, 0.02);  // 9 of 10 steps are 0, one is 2: 1 - 0.1 * 4 / 2
  EXPECT_NEAR(tens.effective_n, 400 * 0.2 / 1.8, 5);
}

TEST(Regression, AnExactLineIsCertainAndAConstantSaysNothing) {
  std::vector<Point> line, constant;
  for (int i = 0; i < 100; ++i) {
    line.push_back({i * 5.0, 1e11 + i * 5.0 * 1e4});
    constant.push_back({i * 5.0, 1e11});
  }
  const Fit fit = fit_line(moments_of(line));
  EXPECT_NEAR(fit.slope_per_s, 1e4, 1e-6);
  EXPECT_NEAR(fit.r_squared, 1, 1e-12);
  EXPECT_LT(fit.p_value, 1e-6);
  const Fit flat = fit_line(moments_of(constant));
  EXPECT_EQ(flat.slope_per_s, 0);
  EXPECT_EQ(flat.r_squared, 0);
  EXPECT_EQ(flat.p_value, 1);
}

TEST(Regression, TimeToTheLimitFollowsTheSlopesInterval) {
  Fit fit;
  fit.slope_per_s = 10;
  fit.slope_se = 1;
  const Interval oom = time_to(fit, 1000, 2000);
  EXPECT_DOUBLE_EQ(oom.mid, 100);
  EXPECT_NEAR(oom.low, 1000 / 11.28155, 1e-3);
  EXPECT_NEAR(oom.high, 1000 / 8.71845, 1e-3);
  fit.slope_se = 100;
  EXPECT_DOUBLE_EQ(time_to(fit, 1000, 2000).high, 10000);
  EXPECT_DOUBLE_EQ(time_to(fit, 3000, 2000).mid, 0);
}

std::vector<Point> arbitrary_points() {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-1000, 1000)));
  std::vector<Point> points;
  for (std::size_t i = 0; i < values.size(); ++i) points.push_back({static_cast<double>(i), 1e11 + 1e6 * values[i]});
  return points;
}

RC_GTEST_PROP(Regression, MergedEqualsWhole, ()) {
  const auto points = arbitrary_points();
  const auto cut = *rc::gen::inRange<std::size_t>(0, points.size() + 1);
  Moments left, right;
  for (std::size_t i = 0; i < points.size(); ++i) {
    Moments& part = i < cut ? left : right;
    if (i > 0) part.add_step(1, points[i].y - points[i - 1].y);
    part.add(points[i].t_s, points[i].y);
  }
  left.merge(right);
  const Moments whole = moments_of(points);
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(b)); };
  RC_ASSERT(left.n == whole.n);
  RC_ASSERT(near(left.mean_y, whole.mean_y) && near(left.tt, whole.tt));
  RC_ASSERT(near(left.yy, whole.yy) && near(left.step_yy, whole.step_yy));
  RC_ASSERT(std::abs(left.ty - whole.ty) <= 1e-9 * std::sqrt(whole.tt * whole.yy) + 1e-6);
}

// The reference: long double over every sample in the window.
TEST(TrendWindow, AgreesWithTheWholeSumsAndForgetsBucketByBucket) {
  TrendWindow window(3600);
  std::vector<Point> all;
  for (int i = 0; i < 5000; ++i) {
    const double t_s = i * 2.5;
    const double y = 8e10 + 1e5 * t_s + 1e8 * std::sin(i * 0.7);
    all.push_back({t_s, y});
    window.observe(Timestamp{from_seconds(1e9 + t_s)}, y);
    if (i % 97 != 0) continue;
    // The window reaches back to the start of a bucket, between 1 and 1 + 1/64 of its length.
    const double reach_s = window.span_s();
    if (t_s > 3700) {
      EXPECT_GT(reach_s, 3600 - 2.6);
      EXPECT_LT(reach_s, 3600 * (1 + 1.0 / 64) + 2.6);
    }
    std::vector<Point> kept;
    for (const Point& p : all)
      if (p.t_s >= t_s - reach_s - 1e-6) kept.push_back(p);
    EXPECT_EQ(window.samples(), static_cast<double>(kept.size()));
    const Fit expected = fit_line(moments_of(kept));
    const Fit fit = fit_line(window.all());
    EXPECT_NEAR(fit.slope_per_s, expected.slope_per_s, 1e-6 * (1 + std::abs(expected.slope_per_s)));
    EXPECT_NEAR(fit.r_squared, expected.r_squared, 1e-9);
    EXPECT_NEAR(fit.autocorrelation, expected.autocorrelation, 1e-3);  // the first bucket keeps the step into it
  }
}

TEST(TrendWindow, AnEqualTimeReplacesTheLastValue) {
  TrendWindow once(600), twice(600);
  for (int i = 0; i < 100; ++i) {
    const Timestamp time{from_seconds(i * 10)};
    twice.observe(time, 1e9 + 7 * i);
    for (TrendWindow* window : {&once, &twice}) window->observe(time, i * i);
  }
  EXPECT_EQ(once.samples(), twice.samples());
  EXPECT_EQ(once.all().yy, twice.all().yy);
  EXPECT_EQ(once.all().step_yy, twice.all().step_yy);
}

TEST(TrendWindow, AGapLongerThanTheWindowStartsAnew) {
  TrendWindow window(600);
  for (int i = 0; i < 50; ++i) window.observe(Timestamp{from_seconds(i * 10)}, i);
  window.observe(Timestamp{from_seconds(100000)}, 7);
  EXPECT_EQ(window.samples(), 1);
  window.observe(Timestamp{from_seconds(100010)}, 8);
  EXPECT_EQ(window.samples(), 2);
  EXPECT_DOUBLE_EQ(fit_slope(window.all()).slope_per_s, 0.1);
  EXPECT_DOUBLE_EQ(window.all().step_yy, 1);
}

}  // namespace
}  // namespace vramtrack
