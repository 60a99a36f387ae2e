#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../at.hpp"
#include "detect/detector.hpp"

namespace vramtrack {

extern const DetectorInfo linear_trend_detector;
extern const DetectorInfo spike_detector;
extern const DetectorInfo composite_detector;

namespace {

using testing::StartsWith;

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;

TEST(Composite, ALeakIsTheTrendsOpinion) {
  const auto composite = composite_detector.make({}, kSecondsAndBytes);
  const auto trend = linear_trend_detector.make({}, kSecondsAndBytes);
  for (Detector* detector : {composite.get(), trend.get()}) {
    detector->set_limit(24 * kGiB);
    for (int i = 0; i <= 900; ++i) detector->observe(at(i), 8 * kGiB + 3 * kMiB * i);
  }
  EXPECT_TRUE(composite->alerting());
  const Finding finding = composite->finding();
  EXPECT_EQ(finding.detector, "composite");
  EXPECT_THAT(finding.because, StartsWith("linear_trend: slope"));
  EXPECT_EQ(finding.confidence, trend->finding().confidence);
  EXPECT_EQ(finding.oom_in_s, trend->finding().oom_in_s);
}

// The figures in docs/detectors/composite.md: the same leak alone, and after the load of a model.
TEST(Composite, TheWorkedExampleOfItsDocument) {
  for (const bool after_a_load : {false, true}) {
    const auto composite = composite_detector.make({}, kSecondsAndBytes);
    composite->set_limit(24 * kGiB);
    int raised_s = 0;
    for (int t = after_a_load ? -60 : 0; t <= 900; ++t) {
      composite->observe(at(t), (t < 0 ? 2 : 8) * kGiB + 3 * kMiB * std::max(t, 0));
      if (t == 60) {
        EXPECT_DOUBLE_EQ(composite->finding().confidence, after_a_load ? 0.25 : 0);
      }
      if (raised_s == 0 && composite->alerting()) raised_s = t;
    }
    EXPECT_EQ(raised_s, after_a_load ? 332 : 300);
    const Finding finding = composite->finding();
    EXPECT_TRUE(finding.leak);
    EXPECT_NEAR(finding.confidence, 1, 1e-6);
    EXPECT_NEAR(finding.growth_bytes_per_s.mid, 3 * kMiB, 1);
    ASSERT_TRUE(finding.oom_in_s);
    EXPECT_NEAR(finding.oom_in_s->mid, 4561, 0.5);  // (16 * 1024 - 2700) / 3
    EXPECT_EQ(finding.because, after_a_load ? "spike: up 6.1 GiB (304 %) within 59 s; still growing: slope 180.0 "
                                              "MiB/min, R2 1.00 over 15 min, 873 samples since"
                                            : "linear_trend: slope 180.0 MiB/min, R2 1.00 over 15 min, 901 samples");
  }
}

TEST(Composite, AJumpIsTheSpikesOpinion) {
  const auto composite = composite_detector.make({}, kSecondsAndBytes);
  for (int i = 0; i <= 700; ++i) composite->observe(at(i), i < 600 ? 8 * kGiB : 12 * kGiB);
  EXPECT_FALSE(composite->alerting());
  const Finding finding = composite->finding();
  EXPECT_EQ(finding.pattern, Pattern::sudden_spike);
  EXPECT_THAT(finding.because, StartsWith("spike: up 4.0 GiB (50 %)"));
}

TEST(Composite, ItSaysHowTheStandingAlertEndedAndExplainsBoth) {
  const auto composite = composite_detector.make({}, kSecondsAndBytes);
  for (int i = 0; i <= 900; ++i) composite->observe(at(i), 8 * kGiB + 3 * kMiB * i);
  ASSERT_TRUE(composite->alerting());
  for (int i = 901; i <= 2000; ++i) composite->observe(at(i), 8 * kGiB);
  EXPECT_FALSE(composite->alerting());
  EXPECT_EQ(composite->last_end(), AlertEnd::released);
  EXPECT_FALSE(composite->last_end_reason().empty());
  EXPECT_THAT(composite->explain(), testing::Contains(StartsWith("spike:")));
  EXPECT_THAT(composite->explain(), testing::Contains(StartsWith("linear_trend:")));
}

TEST(Composite, ASteadySeriesIsSteady) {
  const auto composite = composite_detector.make({}, kSecondsAndBytes);
  for (int i = 0; i <= 900; ++i) composite->observe(at(i), 8 * kGiB);
  EXPECT_EQ(composite->finding().state, State::steady);
  EXPECT_EQ(composite->finding().confidence, 0);
}

}  // namespace
}  // namespace vramtrack
