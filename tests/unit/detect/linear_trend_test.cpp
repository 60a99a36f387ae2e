#include "detect/linear_trend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "../at.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;

/// A small deterministic noise in [-1, 1].
double noise(int i) {
  return 2 * std::fmod(std::abs(std::sin(i * 12.9898) * 43758.5453), 1.0) - 1;
}

// The example in docs/detectors/linear_trend.md: 24 GiB, 8 GiB used, 2 MiB/s, one sample per second, 10 minutes.
TEST(LinearTrend, TheWorkedExampleOfItsDocument) {
  const auto detector = make_linear_trend({}, kSecondsAndBytes);
  detector->set_limit(24 * kGiB);
  for (int i = 0; i <= 600; ++i) detector->observe(at(i), 8 * kGiB + 2 * kMiB * i);
  EXPECT_TRUE(detector->alerting());
  const Finding finding = detector->finding();
  EXPECT_TRUE(finding.leak);
  EXPECT_EQ(finding.state, State::leaking);
  EXPECT_EQ(finding.pattern, Pattern::gradual_leak);
  EXPECT_NEAR(finding.growth_bytes_per_s.mid, 2 * kMiB, 1e-3);
  EXPECT_NEAR(finding.r_squared, 1, 1e-9);
  EXPECT_NEAR(finding.confidence, 1, 1e-6);
  // (24 - 8) GiB - 1200 MiB at 2 MiB/s: (16384 - 1200) / 2 = 7592 s.
  ASSERT_TRUE(finding.oom_in_s);
  EXPECT_NEAR(finding.oom_in_s->mid, 7592, 0.1);
  EXPECT_NEAR(finding.oom_in_s->low, 7592, 1);
  EXPECT_EQ(*finding.onset, at(0));
  EXPECT_EQ(finding.because, "slope 120.0 MiB/min, R2 1.00 over 10 min, 601 samples");
}

// The five points in its document, in MiB: every factor of the confidence by hand.
TEST(LinearTrend, TheConfidenceOfFivePointsByHand) {
  TrendWindow window(64);
  const double mib[] = {2, 4, 5, 4, 5};
  for (int i = 0; i < 5; ++i) window.observe(at(i + 1), mib[i] * kMiB);
  const Trend trend = judge_trend(window, 0.7, 0.5 * kMiB);
  EXPECT_NEAR(trend.fit.slope_per_s, 0.6 * kMiB, 1e-6);  // 6 / 10
  EXPECT_NEAR(trend.fit.r_squared, 0.6, 1e-12);          // 36 / 60
  EXPECT_EQ(trend.fit.autocorrelation, 0);               // 1 - 4.84 / 4.8 is negative
  EXPECT_NEAR(trend.fit.slope_se, 0.28284 * kMiB, 10);   // sqrt(2.4 / 3 / 10)
  EXPECT_NEAR(trend.fit.p_value, 0.06201, 1e-5);         // T = 2.1213 with 3 degrees of freedom
  EXPECT_EQ(trend.recent_share, 1);                      // the last third, 4 to 5, rises by 1 per second
  EXPECT_NEAR(trend.confidence, 0.6228, 1e-4);           // 0.9380 * 0.7746 * 0.6 / 0.7
}

TEST(LinearTrend, SaysTooShortUntilTwentySamplesAndFiveMinutes) {
  const auto fast = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i < 300; ++i) fast->observe(at(i), kGiB + 5 * kMiB * i);
  EXPECT_EQ(fast->finding().state, State::too_short);  // 299 s
  EXPECT_FALSE(fast->alerting());
  fast->observe(at(300), kGiB + 5 * kMiB * 300);
  EXPECT_TRUE(fast->alerting());
  const auto slow = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i < 19; ++i) slow->observe(at(60 * i), kGiB + 300 * kMiB * i);
  EXPECT_FALSE(slow->alerting());
  EXPECT_THAT(slow->finding().because, HasSubstr("19 samples"));
  slow->observe(at(60 * 19), kGiB + 300 * kMiB * 19);
  EXPECT_TRUE(slow->alerting());
}

TEST(LinearTrend, TheLeastSlopeBinds) {
  DetectionConfig config;
  for (const double mib_per_s : {0.9, 1.1}) {
    const auto detector = make_linear_trend(config, kSecondsAndBytes);
    for (int i = 0; i <= 600; ++i) detector->observe(at(i), kGiB + mib_per_s * kMiB * i);
    EXPECT_EQ(detector->alerting(), mib_per_s > 1);
    EXPECT_EQ(detector->finding().state, mib_per_s > 1 ? State::leaking : State::growing);
  }
  config.min_slope_mb_per_sec = 0.1;
  const auto detector = make_linear_trend(config, kSecondsAndBytes);
  for (int i = 0; i <= 600; ++i) detector->observe(at(i), kGiB + 0.2 * kMiB * i);
  EXPECT_TRUE(detector->alerting());  // the documents' own 12.4 MB/min, if requested
}

TEST(LinearTrend, RSquaredAndTheConfidenceThresholdBind) {
  // Noise of +-1 GiB around 2 MiB/s over 10 min: R2 = 0.27; over an hour, 0.94.
  const auto detector = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i <= 600; ++i) detector->observe(at(i), 8 * kGiB + 2 * kMiB * i + kGiB * noise(i));
  EXPECT_FALSE(detector->alerting());
  for (int i = 601; i <= 3600; ++i) detector->observe(at(i), 8 * kGiB + 2 * kMiB * i + kGiB * noise(i));
  EXPECT_TRUE(detector->alerting());
  EXPECT_GT(detector->finding().confidence, 0.9);
  DetectionConfig strict;
  strict.confidence_threshold = 0.99;
  const auto careful = make_linear_trend(strict, kSecondsAndBytes);
  for (int i = 0; i <= 3600; ++i) careful->observe(at(i), 8 * kGiB + 2 * kMiB * i + kGiB * noise(i));
  EXPECT_FALSE(careful->alerting());
  EXPECT_THAT(careful->finding().because, HasSubstr("below 0.99"));
}

TEST(LinearTrend, AWarmUpThatHasStoppedHalvesTheConfidence) {
  const auto detector = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i <= 3000; ++i) detector->observe(at(i), 8 * kGiB + 4 * kMiB * std::min(i, 1200));
  const Finding finding = detector->finding();
  EXPECT_FALSE(finding.leak);
  EXPECT_LE(finding.confidence, 0.5);
}

TEST(LinearTrend, TheWindowForgetsWhatIsOlderThanAnHour) {
  const auto detector = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i <= 1200; ++i) detector->observe(at(i), 8 * kGiB + 4 * kMiB * i);
  EXPECT_TRUE(detector->alerting());
  for (int i = 1201; i <= 4900; ++i) detector->observe(at(i), 8 * kGiB + 4800 * kMiB);
  EXPECT_FALSE(detector->alerting());
  EXPECT_EQ(detector->last_end(), AlertEnd::withdrawn);
  EXPECT_EQ(detector->finding().state, State::steady);
  EXPECT_EQ(detector->finding().growth_bytes_per_s.mid, 0);
}

TEST(LinearTrend, MemoryThatComesBackIsAReleasedAlert) {
  const auto detector = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i <= 1200; ++i) detector->observe(at(i), 8 * kGiB + 4 * kMiB * i);
  ASSERT_TRUE(detector->alerting());
  for (int i = 1201; i <= 1800; ++i) detector->observe(at(i), 8 * kGiB);
  EXPECT_FALSE(detector->alerting());
  EXPECT_EQ(detector->last_end(), AlertEnd::released);
  EXPECT_THAT(detector->last_end_reason(), HasSubstr("was released"));
}

TEST(LinearTrend, NoLimitNoPrediction) {
  const auto detector = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i <= 600; ++i) detector->observe(at(i), 8 * kGiB + 2 * kMiB * i);
  EXPECT_TRUE(detector->finding().leak);
  EXPECT_FALSE(detector->finding().oom_in_s);
}

TEST(LinearTrend, FallingIsSaidAndExplainShowsEveryGate) {
  const auto detector = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i <= 600; ++i) detector->observe(at(i), 8 * kGiB - 2 * kMiB * i);
  EXPECT_EQ(detector->finding().state, State::falling);
  EXPECT_EQ(detector->finding().confidence, 0);
  EXPECT_THAT(detector->explain(), testing::Contains(HasSubstr("slope -2 MiB/s, needs 1: misses")));
}

TEST(LinearTrend, AGapIsNotGrowthAndALongOneStartsAnew) {
  const auto detector = make_linear_trend({}, kSecondsAndBytes);
  for (int i = 0; i <= 600; ++i) detector->observe(at(i), 8 * kGiB);
  for (int i = 0; i <= 100; ++i) detector->observe(at(9000 + i), 12 * kGiB);
  EXPECT_FALSE(detector->alerting());
  EXPECT_EQ(detector->finding().state, State::too_short);
}

// --- properties ---

struct Series {
  std::vector<double> gaps_s;
  std::vector<double> bytes;
};

Series arbitrary_series() {
  Series series;
  const auto steps = *rc::gen::resize(200, rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
                                               rc::gen::pair(rc::gen::inRange(1, 60), rc::gen::inRange(-200, 400)))));
  double bytes = 20 * kGiB;
  for (const auto& [gap, mib] : steps) {
    series.gaps_s.push_back(gap);
    bytes = std::max(bytes + mib * kMiB, 0.0);
    series.bytes.push_back(bytes);
  }
  return series;
}

Finding run(const Series& series, const DetectionConfig& config, double shift_bytes, double scale, double shift_s,
            bool duplicates, std::optional<double> limit) {
  const auto detector = make_linear_trend(config, kSecondsAndBytes);
  detector->set_limit(limit);
  double t_s = shift_s;
  for (std::size_t i = 0; i < series.bytes.size(); ++i) {
    t_s += series.gaps_s[i];
    const double value = scale * series.bytes[i] + shift_bytes;
    if (duplicates) detector->observe(at(t_s), value + 3 * kGiB);
    detector->observe(at(t_s), value);
    if (duplicates) detector->observe(at(t_s), value);
  }
  return detector->finding();
}

/// Compares everything except the words and the times.
void expect_same(const Finding& a, const Finding& b, double scale) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= 1e-6 * (std::abs(x) + std::abs(y)) + 1e-3; };
  RC_ASSERT(a.leak == b.leak);
  RC_ASSERT(a.state == b.state);
  RC_ASSERT(std::abs(a.confidence - b.confidence) < 1e-5);
  RC_ASSERT(std::abs(a.r_squared - b.r_squared) < 1e-6);
  RC_ASSERT(near(a.growth_bytes_per_s.mid * scale, b.growth_bytes_per_s.mid));
  RC_ASSERT(a.oom_in_s.has_value() == b.oom_in_s.has_value());
  if (a.oom_in_s) RC_ASSERT(near(a.oom_in_s->mid, b.oom_in_s->mid));
}

RC_GTEST_PROP(LinearTrend, ShiftInBytesChangesNothing, ()) {
  const Series series = arbitrary_series();
  const double shift = *rc::gen::inRange(0, 100000) * kMiB;
  expect_same(run(series, {}, 0, 1, 0, false, 400 * kGiB), run(series, {}, shift, 1, 0, false, 400 * kGiB + shift), 1);
}

RC_GTEST_PROP(LinearTrend, ShiftInTimeChangesNothing, ()) {
  const Series series = arbitrary_series();
  const double shift_s = *rc::gen::inRange(0, 1700000000);
  expect_same(run(series, {}, 0, 1, 0, false, 400 * kGiB), run(series, {}, 0, 1, shift_s, false, 400 * kGiB), 1);
}

RC_GTEST_PROP(LinearTrend, ScaleChangesOnlyTheRateWithTheSlopeThresholdOff, ()) {
  const Series series = arbitrary_series();
  DetectionConfig config;
  config.min_slope_mb_per_sec = 0;
  const double scale = std::ldexp(1.0, *rc::gen::inRange(-6, 4));
  expect_same(run(series, config, 0, 1, 0, false, 400 * kGiB),
              run(series, config, 0, scale, 0, false, 400 * scale * kGiB), scale);
}

RC_GTEST_PROP(LinearTrend, DuplicateStampsChangeNothing, ()) {
  const Series series = arbitrary_series();
  // That applies to the figures; an alert raised by a replaced value is not withdrawn.
  DetectionConfig config;
  config.minimum_samples = 2;
  config.minimum_duration_minutes = 0;
  config.confidence_threshold = 2;
  expect_same(run(series, config, 0, 1, 0, false, 400 * kGiB), run(series, config, 0, 1, 0, true, 400 * kGiB), 1);
}

RC_GTEST_PROP(LinearTrend, NeverPredictsOomOnAConstantSeries, ()) {
  Series series = arbitrary_series();
  for (double& bytes : series.bytes) bytes = 20 * kGiB;
  const Finding finding = run(series, {}, 0, 1, 0, false, 24 * kGiB);
  RC_ASSERT(!finding.leak && !finding.oom_in_s && finding.confidence == 0);
}

RC_GTEST_PROP(LinearTrend, FiguresAreInRange, ()) {
  const Finding f = run(arbitrary_series(), {}, 0, 1, 0, false, 24 * kGiB);
  RC_ASSERT(f.confidence >= 0 && f.confidence <= 1 && f.r_squared >= 0 && f.r_squared <= 1);
  RC_ASSERT(f.growth_bytes_per_s.low <= f.growth_bytes_per_s.mid &&
            f.growth_bytes_per_s.mid <= f.growth_bytes_per_s.high);
  if (f.oom_in_s)
    RC_ASSERT(f.oom_in_s->low >= 0 && f.oom_in_s->low <= f.oom_in_s->mid && f.oom_in_s->mid <= f.oom_in_s->high);
}

}  // namespace
}  // namespace vramtrack
