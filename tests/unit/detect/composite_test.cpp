#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "detect/detector.hpp"

namespace vramtrack {

extern const DetectorInfo linear_trend_detector;
extern const DetectorInfo spike_detector;
extern const DetectorInfo composite_detector;

namespace {

using testing::StartsWith;

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;

Timestamp at(double t_s) {
  return Timestamp{from_seconds(t_s)};
}

TEST(Composite, ALeakIsTheTrendsOpinion) {
  const auto composite = composite_detector.make({});
  const auto trend = linear_trend_detector.make({});
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

TEST(Composite, AJumpIsTheSpikesOpinion) {
  const auto composite = composite_detector.make({});
  for (int i = 0; i <= 700; ++i) composite->observe(at(i), i < 600 ? 8 * kGiB : 12 * kGiB);
  EXPECT_FALSE(composite->alerting());
  const Finding finding = composite->finding();
  EXPECT_EQ(finding.pattern, Pattern::sudden_spike);
  EXPECT_THAT(finding.because, StartsWith("spike: up 4.0 GiB (50 %)"));
}

TEST(Composite, ItSaysHowTheStandingAlertEndedAndExplainsBoth) {
  const auto composite = composite_detector.make({});
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
  const auto composite = composite_detector.make({});
  for (int i = 0; i <= 900; ++i) composite->observe(at(i), 8 * kGiB);
  EXPECT_EQ(composite->finding().state, State::steady);
  EXPECT_EQ(composite->finding().confidence, 0);
}

}  // namespace
}  // namespace vramtrack
