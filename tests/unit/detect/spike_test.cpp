#include "detect/spike.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "../at.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;

/// Feeds `bytes(t)` every `period_s` until `end_s`, starting at the detector's current time.
template <class Bytes>
void feed(Detector& detector, double from_s, double end_s, double period_s, Bytes bytes) {
  for (double t_s = from_s; t_s <= end_s; t_s += period_s) detector.observe(at(t_s), bytes(t_s));
}

// The example of docs/detectors/spike.md: 8 GiB, up by 5 GiB (62 %) at 600 s within 10 s.
double example(double t_s) {
  return 8 * kGiB + 5 * kGiB * std::clamp((t_s - 600) / 10, 0.0, 1.0);
}

TEST(Spike, AJumpThatStaysIsNamedAndStabilises) {
  const auto detector = make_spike({}, kSecondsAndBytes);
  detector->set_limit(24 * kGiB);
  feed(*detector, 0, 599, 1, example);
  EXPECT_EQ(detector->finding().state, State::steady);
  feed(*detector, 600, 700, 1, example);
  Finding finding = detector->finding();
  EXPECT_EQ(finding.state, State::spiked);
  EXPECT_EQ(finding.pattern, Pattern::sudden_spike);
  EXPECT_EQ(finding.spike, SpikeOutcome::none);
  EXPECT_FALSE(finding.leak);
  EXPECT_DOUBLE_EQ(finding.confidence, 0.25);
  feed(*detector, 701, 1000, 1, example);
  finding = detector->finding();
  EXPECT_EQ(finding.spike, SpikeOutcome::stabilised);
  EXPECT_FALSE(finding.leak);
  EXPECT_FALSE(detector->alerting());
  EXPECT_THAT(finding.because, HasSubstr("up 5.0 GiB (6"));
  EXPECT_THAT(finding.because, HasSubstr("stabilised"));
  EXPECT_FALSE(finding.oom_in_s);
  feed(*detector, 1001, 5000, 1, example);
  EXPECT_EQ(detector->finding().state, State::steady);  // forgotten after the analysis window
}

TEST(Spike, AJumpAfterWhichItGoesOnGrowingIsALeak) {
  const auto detector = make_spike({}, kSecondsAndBytes);
  detector->set_limit(24 * kGiB);
  const auto growing = [](double t_s) { return example(t_s) + 4 * kMiB * std::max(t_s - 600, 0.0); };
  feed(*detector, 0, 900, 1, growing);
  EXPECT_FALSE(detector->alerting());
  feed(*detector, 901, 1000, 1, growing);
  EXPECT_TRUE(detector->alerting());
  const Finding finding = detector->finding();
  EXPECT_TRUE(finding.leak);
  EXPECT_EQ(finding.state, State::leaking);
  EXPECT_EQ(finding.spike, SpikeOutcome::still_growing);
  EXPECT_NEAR(finding.growth_bytes_per_s.mid, 4 * kMiB, 0.05 * kMiB);
  EXPECT_GT(finding.confidence, 0.9);
  // 24 - 13 GiB, minus 400 s of growth, at 4 MiB/s.
  ASSERT_TRUE(finding.oom_in_s);
  EXPECT_NEAR(finding.oom_in_s->mid, (11 * 1024 - 1600) / 4.0, 40);
}

// The figures of docs/detectors/spike.md, one by one.
TEST(Spike, TheWorkedExampleOfItsDocument) {
  const auto stays = make_spike({}, kSecondsAndBytes);
  const auto grows = make_spike({}, kSecondsAndBytes);
  for (Detector* detector : {stays.get(), grows.get()}) detector->set_limit(24 * kGiB);
  const auto growing = [](double t_s) { return example(t_s) + 4 * kMiB * std::max(t_s - 610, 0.0); };
  feed(*stays, 0, 603, 1, example);  // up 1.5 GiB
  EXPECT_EQ(stays->finding().state, State::steady);
  stays->observe(at(604), example(604));  // up 2.0: more than 20 % of 8 GiB, 1.6
  EXPECT_EQ(stays->finding().state, State::spiked);
  EXPECT_EQ(*stays->finding().onset, at(573));
  feed(*stays, 605, 909, 1, example);
  EXPECT_DOUBLE_EQ(stays->finding().confidence, 0.25);
  EXPECT_EQ(stays->finding().because, "up 5.0 GiB (62 %) within 37 s; whether it stabilises is known after 5 min");
  feed(*stays, 910, 914, 1, example);
  EXPECT_DOUBLE_EQ(stays->finding().confidence, 0.05);
  EXPECT_EQ(stays->finding().because,
            "up 5.0 GiB (62 %) within 37 s; stabilised: slope 0.0 MiB/min, R2 0.00 over 5 min, 305 samples since");
  feed(*grows, 0, 932, 1, growing);
  EXPECT_FALSE(grows->alerting());
  feed(*grows, 933, 937, 1, growing);
  EXPECT_TRUE(grows->alerting());
  const Finding finding = grows->finding();
  EXPECT_EQ(finding.because,
            "up 5.1 GiB (64 %) within 59 s; still growing: slope 240.0 MiB/min, R2 1.00 over 5 min, 306 samples since");
  EXPECT_NEAR(finding.growth_bytes_per_s.mid, 4 * kMiB, 1);
  EXPECT_NEAR(finding.confidence, 1, 1e-6);
  ASSERT_TRUE(finding.oom_in_s);
  EXPECT_NEAR(finding.oom_in_s->mid, 2489, 0.5);  // (11 * 1024 - 4 * 327) / 4
}

TEST(Spike, AJumpThatGoesAgainIsForgottenAtOnce) {
  const auto detector = make_spike({}, kSecondsAndBytes);
  const auto transient = [](double t_s) { return t_s >= 600 && t_s < 640 ? 13 * kGiB : 8 * kGiB; };
  feed(*detector, 0, 639, 1, transient);
  EXPECT_EQ(detector->finding().state, State::spiked);
  feed(*detector, 640, 660, 1, transient);
  EXPECT_EQ(detector->finding().state, State::steady);
}

TEST(Spike, TwentyPerCentIsNotMoreThanTwentyPerCent) {
  for (const double rise_gib : {1.99, 2.01}) {
    const auto detector = make_spike({}, kSecondsAndBytes);
    feed(*detector, 0, 60, 1, [](double) { return 10 * kGiB; });
    detector->observe(at(61), (10 + rise_gib) * kGiB);
    EXPECT_EQ(detector->finding().state, rise_gib > 2 ? State::spiked : State::steady);
  }
}

TEST(Spike, ARiseSlowerThanTheWindowIsNone) {
  const auto detector = make_spike({}, kSecondsAndBytes);
  // 20 % in 40 s is 15 % in 30.
  feed(*detector, 0, 600, 1, [](double t_s) { return 10 * kGiB + 2 * kGiB * std::clamp((t_s - 300) / 40, 0.0, 1.0); });
  EXPECT_EQ(detector->finding().state, State::steady);
}

TEST(Spike, FromALowStartTheRiseIsMeasuredAgainstTheCapacity) {
  for (const double rise_gib : {4.0, 5.0}) {  // 20 % of 24 GiB is 4.8 GiB
    const auto detector = make_spike({}, kSecondsAndBytes);
    detector->set_limit(24 * kGiB);
    feed(*detector, 0, 60, 1, [](double) { return 0.5 * kGiB; });
    detector->observe(at(61), (0.5 + rise_gib) * kGiB);
    EXPECT_EQ(detector->finding().state, rise_gib > 4.8 ? State::spiked : State::steady);
  }
}

TEST(Spike, FromZeroOfAnUnknownCapacityNoPercentageCanBeTold) {
  const auto detector = make_spike({}, kSecondsAndBytes);
  feed(*detector, 0, 60, 1, [](double t_s) { return t_s < 50 ? 0 : 9 * kGiB; });
  EXPECT_EQ(detector->finding().state, State::steady);
}

TEST(Spike, WhereThePeriodIsLongerThanTheWindowNeighboursAreCompared) {
  const auto detector = make_spike({}, kSecondsAndBytes);
  feed(*detector, 0, 1200, 60, [](double t_s) { return t_s < 900 ? 10 * kGiB : 13 * kGiB; });
  EXPECT_EQ(detector->finding().state, State::spiked);
  // But not across a gap, because what happened in it is unknown.
  const auto gap = make_spike({}, kSecondsAndBytes);
  feed(*gap, 0, 600, 5, [](double) { return 10 * kGiB; });
  feed(*gap, 4000, 4200, 5, [](double) { return 13 * kGiB; });
  EXPECT_EQ(gap->finding().state, State::steady);
}

TEST(Spike, AModelLoadedInShardsIsOneSpike) {
  const auto detector = make_spike({}, kSecondsAndBytes);
  detector->set_limit(80 * kGiB);
  feed(*detector, 0, 1500, 5,
       [](double t_s) { return 18 * kGiB + 26 * kGiB * std::clamp((t_s - 600) / 90, 0.0, 1.0); });
  const Finding finding = detector->finding();
  EXPECT_EQ(finding.spike, SpikeOutcome::stabilised);
  EXPECT_FALSE(detector->alerting());
}

TEST(Spike, MemoryStaysBoundedAndTheAnswerTheSameAtAHighRate) {
  const auto detector = make_spike({}, kSecondsAndBytes);
  feed(*detector, 0, 700, 0.01, example);
  const Finding finding = detector->finding();
  EXPECT_EQ(finding.state, State::spiked);
  EXPECT_NEAR(seconds_between(*finding.onset, at(600)), 28, 3);  // the window's start when 20 % was passed
}

RC_GTEST_PROP(Spike, NeverAlertsOnAConstantSeriesAndADuplicateChangesNothing, ()) {
  const auto gaps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 100));
  const auto levels = *rc::gen::container<std::vector<int>>(gaps.size(), rc::gen::inRange(0, 20));
  const auto constant = make_spike({}, kSecondsAndBytes);
  const auto once = make_spike({}, kSecondsAndBytes);
  const auto twice = make_spike({}, kSecondsAndBytes);
  for (const auto& detector : {constant.get(), once.get(), twice.get()}) detector->set_limit(24 * kGiB);
  double t_s = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    t_s += gaps[i];
    constant->observe(at(t_s), 7 * kGiB);
    once->observe(at(t_s), levels[i] * kGiB);
    twice->observe(at(t_s), levels[i] * kGiB);
    twice->observe(at(t_s), levels[i] * kGiB);
    RC_ASSERT(!constant->alerting());
    RC_ASSERT(once->alerting() == twice->alerting());
    RC_ASSERT(once->finding().because == twice->finding().because);
  }
  RC_ASSERT(!constant->finding().oom_in_s);
}

}  // namespace
}  // namespace vramtrack
