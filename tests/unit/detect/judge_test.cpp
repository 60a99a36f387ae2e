// The judge's promises: what it must detect and when, what it must ignore, and the properties of any series. Figures
// are in bytes and seconds; shapes are written out so that answers can be checked by hand.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "detect/detector.hpp"

namespace vramtrack {
namespace {

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;

struct Outcome {
  std::optional<double> suspected_s;
  std::optional<double> raised_s;
  std::optional<double> cleared_s;
  AlertEnd end = AlertEnd::standing;
  Finding at_raise;
  Finding last;
};

using Shape = std::function<double(double)>;

Outcome watch(const Shape& used_bytes, double duration_s, double period_s,
              std::optional<double> limit_bytes = 24 * kGiB, const DetectionConfig& config = {}) {
  const auto judge = find_detector("judge")->make(config, kSecondsAndBytes);
  judge->set_limit(limit_bytes);
  Outcome out;
  bool alerting = false;
  for (double t = 0; t <= duration_s; t += period_s) {
    judge->observe(Timestamp{from_seconds(t)}, std::floor(used_bytes(t) / kMiB) * kMiB);
    if (judge->suspecting() && !out.suspected_s) out.suspected_s = t;
    EXPECT_TRUE(judge->suspecting() || !judge->alerting()) << "what is confirmed is suspected";
    if (judge->alerting() == alerting) continue;
    alerting = judge->alerting();
    if (alerting && !out.raised_s) {
      out.raised_s = t;
      out.at_raise = judge->finding();
    } else if (!alerting) {
      out.cleared_s = t;
      out.end = judge->last_end();
    }
  }
  out.last = judge->finding();
  return out;
}

/// Repeatable noise in [0, 1): a hash of the time, so that shapes stay functions of time.
double noise(double t) {
  const double x = std::sin(t * 12.9898) * 43758.5453;
  return x - std::floor(x);
}

class PeriodTest : public testing::TestWithParam<double> {};

// On larger cards, which it would take a day to fill, it may be the first morning of a daily load.
TEST_P(PeriodTest, FiftyMiBAMinuteIsSuspectedWithinTwentyMinutesAndConfirmedWithinTheHourWhereItEndsToday) {
  for (const double card : {24.0, 80.0, 141.0}) {
    const Outcome o = watch([](double t) { return 12 * kGiB + 50 * kMiB / 60 * t + 20 * kMiB * noise(t); }, 3600,
                            GetParam(), card * kGiB);
    EXPECT_EQ(o.raised_s.has_value(), card < 80) << card << " GiB";
    // Never before the 20 samples that the documents require.
    ASSERT_TRUE(o.suspected_s);
    EXPECT_LE(*o.suspected_s, 20 * std::max(60.0, GetParam())) << card << " GiB";
    EXPECT_EQ(o.last.because.find("may be the morning of a daily load") == std::string::npos, o.last.leak)
        << o.last.because;
    EXPECT_EQ(o.last.pattern, o.last.leak ? Pattern::gradual_leak : Pattern::none);
    EXPECT_NEAR(o.last.growth_bytes_per_s.mid, 50 * kMiB / 60, 2 * kMiB / 60);
    EXPECT_GT(o.last.r_squared, 0.98);
  }
}
INSTANTIATE_TEST_SUITE_P(Periods, PeriodTest, testing::Values(1.0, 5.0, 10.0, 30.0, 60.0),
                         [](const auto& each) { return std::to_string(static_cast<int>(each.param)) + "_s"; });

// 12.4 MB/min, under their floor of 1 MB/s: half a day of it may be a morning, more is a leak.
TEST(Judge, TheDocumentsOwnExampleIsSuspectedAndConfirmed) {
  const Outcome o = watch([](double t) { return 12 * kGiB + 12.4 * kMiB / 60 * t; }, 14 * 3600, 5);
  ASSERT_TRUE(o.suspected_s && o.raised_s);
  EXPECT_LE(*o.suspected_s, 20 * 60);
  EXPECT_LE(*o.raised_s, 13.5 * 3600);
}

TEST(Judge, WhatWasSeenForADayHasNoFirstMorning) {
  const auto rising_after = [](double from_s) {
    return watch([=](double t) { return 12 * kGiB + std::max(0.0, t - from_s) * 30 * kMiB / 60; }, from_s + 7200, 10,
                 80 * kGiB);
  };
  EXPECT_FALSE(rising_after(4 * 3600).raised_s);
  const Outcome o = rising_after(25 * 3600);
  ASSERT_TRUE(o.raised_s);
  EXPECT_LE(*o.raised_s, 25 * 3600 + 3600);
}

TEST(Judge, TheIntervalOfTheRateIsNarrowAndHoldsIt) {
  constexpr double kRate = 50 * kMiB / 60;
  const Outcome o = watch([](double t) { return 12 * kGiB + kRate * t + 20 * kMiB * noise(t); }, 3600, 5);
  ASSERT_TRUE(o.last.leak);
  EXPECT_GT(o.last.growth_bytes_per_s.low, 0.9 * kRate);
  EXPECT_LE(o.last.growth_bytes_per_s.low, kRate);
  EXPECT_GE(o.last.growth_bytes_per_s.high, kRate);
  EXPECT_LT(o.last.growth_bytes_per_s.high, 1.1 * kRate);
}

TEST(Judge, ForetellsTheEndOfALinearLeakWithinItsInterval) {
  // From 12 to 24 GiB at 64 MiB/min takes 192 min. Half-way, 96 min remain.
  const Outcome o = watch([](double t) { return 12 * kGiB + 64 * kMiB / 60 * t; }, 96 * 60, 5);
  ASSERT_TRUE(o.last.oom_in_s);
  EXPECT_NEAR(o.last.oom_in_s->mid, 96 * 60, 5 * 60);
  EXPECT_LT(o.last.oom_in_s->low, 96 * 60);
  EXPECT_GT(o.last.oom_in_s->high, 96 * 60);
}

TEST(Judge, AnAcceleratingLeakEndsSoonerThanTheLineSays) {
  // 12 GiB of headroom used up as (t / 2 h)^2: at 90 min 6.75 GiB are gone and 30 min remain; a line predicts 70.
  const Outcome o = watch([](double t) { return 12 * kGiB + 12 * kGiB * std::pow(t / 7200, 2); }, 5400, 5);
  ASSERT_TRUE(o.last.leak);
  ASSERT_TRUE(o.last.oom_in_s);
  EXPECT_NEAR(o.last.oom_in_s->mid, 30 * 60, 4 * 60);
}

TEST(Judge, WithoutALimitThereIsALeakButNoEnd) {
  const Outcome o = watch([](double t) { return 12 * kGiB + 50 * kMiB / 60 * t; }, 3600, 1, std::nullopt);
  EXPECT_TRUE(o.last.leak);
  EXPECT_FALSE(o.last.oom_in_s);
}

TEST(Judge, ARegularStaircaseIsAStepIncrease) {
  const Outcome o = watch([](double t) { return 8 * kGiB + 800 * kMiB * std::floor(t / 600); }, 3 * 3600, 5);
  ASSERT_TRUE(o.raised_s);
  EXPECT_EQ(o.last.pattern, Pattern::step_increase);
}

TEST(Judge, ASawtoothWithARisingFloorIsCyclic) {
  // 3 GiB every two minutes, of which 100 MiB stay.
  const Outcome o =
      watch([](double t) { return 6 * kGiB + 100 * kMiB * std::floor(t / 120) + 3 * kGiB * std::fmod(t, 120) / 120; },
            2 * 3600, 1);
  ASSERT_TRUE(o.raised_s);
  EXPECT_EQ(o.last.pattern, Pattern::cyclic);
}

TEST(Judge, LeavesHealthySeriesAlone) {
  const auto fmod_ramp = [](double t, double period_s) { return std::fmod(t, period_s) / period_s; };
  const std::vector<std::pair<const char*, Shape>> healthy = {
      {"constant", [](double) { return 12 * kGiB; }},
      {"idle noise", [](double t) { return 800 * kMiB + 40 * kMiB * noise(t); }},
      {"one-time load", [](double t) { return t < 60 ? 12 * kGiB * t / 60 : 12 * kGiB; }},
      {"two settling steps", [](double t) { return (t < 900    ? 9
                                                    : t < 2400 ? 13
                                                               : 18) *
                                                   kGiB; }},
      {"exponential warm-up", [](double t) { return 8 * kGiB + 8 * kGiB * (1 - std::exp(-t / 900)); }},
      {"logarithmic warm-up", [](double t) { return 8 * kGiB + 1.2 * kGiB * std::log1p(t / 60); }},
      {"sawtooth", [&](double t) { return 8 * kGiB + 6 * kGiB * fmod_ramp(t, 90); }},
      {"evaluation spikes", [](double t) { return (std::fmod(t, 1800) > 1600 ? 16 : 11) * kGiB; }},
      {"bursty serving",
       [](double t) { return 10 * kGiB + (noise(std::floor(t / 40)) < 0.3 ? 8 * kGiB * noise(t) : 0); }},
  };
  for (const auto& [name, shape] : healthy)
    for (const double period_s : {1.0, 10.0, 60.0}) {
      const Outcome o = watch(shape, 6 * 3600, period_s);
      EXPECT_FALSE(o.raised_s) << name << " at " << period_s << " s: " << o.at_raise.because;
      EXPECT_FALSE(o.last.leak) << name;
      EXPECT_FALSE(o.last.oom_in_s) << name;
    }
}

TEST(Judge, ASpikeThatStaysIsNoLeak) {
  const Outcome o = watch([](double t) { return (t < 2400 ? 10 : 15) * kGiB; }, 3600, 1);
  EXPECT_FALSE(o.raised_s);
  EXPECT_EQ(o.last.state, State::spiked);
  EXPECT_EQ(o.last.pattern, Pattern::sudden_spike);
  EXPECT_EQ(o.last.spike, SpikeOutcome::stabilised);
  EXPECT_FALSE(o.last.leak);
}

TEST(Judge, ACleanFirstRampIsSuspectedAtMost) {
  const Outcome o = watch([](double t) { return 8 * kGiB + 6 * kGiB * std::fmod(t, 2400) / 2400; }, 3600, 1);
  EXPECT_TRUE(o.suspected_s) << "nothing tells a 40 min ramp from a leak while it lasts";
  EXPECT_FALSE(o.raised_s) << "hours are left";
  EXPECT_EQ(o.last.stage, Stage::none);
}

TEST(Judge, TheEndOfTheProgramReleasesTheAlert) {
  const Outcome o = watch([](double t) { return t < 3600 ? 8 * kGiB + 100 * kMiB / 60 * t : 0.2 * kGiB; }, 4000, 1);
  ASSERT_TRUE(o.cleared_s);
  EXPECT_EQ(o.end, AlertEnd::released);
}

TEST(Judge, AStraightFallIsFalling) {
  const Outcome o = watch([](double t) { return 12 * kGiB - 7 * kGiB * t / 3600; }, 3600, 5);
  EXPECT_EQ(o.last.state, State::falling);
}

TEST(Judge, AFallThatIsOverIsSteady) {
  const Outcome o = watch([](double t) { return (t < 1200 ? 12 : 7) * kGiB; }, 3 * 3600, 5);
  EXPECT_EQ(o.last.state, State::steady);
}

TEST(Judge, ALeakThatTurnsRoundIsWithdrawnAndForetellsNothing) {
  // +120 MiB/min for an hour, then -144 MiB/min.
  const Shape shape = [](double t) { return 4 * kGiB + (t < 3600 ? 2 * t : 7200 - 2.4 * (t - 3600)) * kMiB; };
  const Outcome o = watch(shape, 4800, 5);
  ASSERT_TRUE(o.raised_s);
  ASSERT_TRUE(o.cleared_s);
  EXPECT_LT(*o.cleared_s, 3600 + 15 * 60);
  EXPECT_EQ(o.end, AlertEnd::withdrawn);
  EXPECT_FALSE(o.last.oom_in_s);
}

TEST(Judge, WhatStillGrowsAfterAJumpHasARate) {
  // Two runs of one program that loads a model in two steps and then grows by 177 MiB/min.
  const Shape shape = [](double t) {
    const double of_run = std::fmod(t, 3420);
    return of_run < 30 ? 1152 * kMiB : of_run < 120 ? 5801 * kMiB : (11'600 + 177 * (of_run - 120) / 60) * kMiB;
  };
  const Outcome o = watch(shape, 2 * 3420 - 60, 30, std::nullopt);
  EXPECT_EQ(o.last.spike, SpikeOutcome::still_growing);
  EXPECT_NEAR(o.last.growth_bytes_per_s.mid * 60 / kMiB, 177, 9);
}

TEST(Judge, GrowthAfterAJumpThatHasStoppedIsStabilised) {
  const Shape shape = [](double t) {
    return t < 1200 ? 6 * kGiB : 8 * kGiB + 1.8 * kGiB * std::min(t - 1200, 300.0) / 300;
  };
  const Outcome o = watch(shape, 1200 + 2400, 5);
  EXPECT_EQ(o.last.state, State::spiked);
  EXPECT_EQ(o.last.spike, SpikeOutcome::stabilised);
  EXPECT_EQ(o.last.because, "jumped from 6.0 GiB to 8.3 GiB, rose to 9.8 GiB and stays there");
}

TEST(Judge, TheLaterOfTwoEqualStampsCounts) {
  const auto once = find_detector("judge")->make({}, kSecondsAndBytes);
  const auto twice = find_detector("judge")->make({}, kSecondsAndBytes);
  for (int i = 0; i < 1200; ++i) {
    const double bytes = 4 * kGiB + 2 * kMiB * static_cast<double>(i);
    const Timestamp time{from_seconds(i * 3.0)};
    once->observe(time, bytes);
    twice->observe(time, bytes + 3 * kGiB * noise(i));
    twice->observe(time, bytes);
    ASSERT_EQ(once->alerting(), twice->alerting()) << i;
  }
  EXPECT_EQ(once->finding().confidence, twice->finding().confidence);
}

TEST(Judge, GrowthBeyondTheHorizonIsSlowGrowthAndNoAlarm) {
  const Outcome o = watch([](double t) { return 26 * kGiB + 15 * kMiB / 3600 * t; }, 20 * 3600, 60, 62 * kGiB);
  EXPECT_FALSE(o.raised_s);
  EXPECT_EQ(o.last.state, State::slow_growth);
}

TEST(Judge, SlowGrowthIsAnAlertOnceItsEndComesWithinTheHorizon) {
  // 8 days to the end: no alert on the first day.
  const auto rise = [](double t) { return 12 * kGiB + 12 * kGiB * t / (8 * 86400); };
  EXPECT_EQ(watch(rise, 20 * 3600, 60).last.state, State::slow_growth);
  const Outcome o = watch(rise, 2 * 86400, 60);
  ASSERT_TRUE(o.raised_s);
  EXPECT_GT(*o.raised_s, 0.9 * 86400);
  EXPECT_NE(o.last.because.find("it counted as slow growth until memory was predicted to run out within 7 days"),
            std::string::npos)
      << o.last.because;
  ASSERT_TRUE(o.last.oom_in_s);
  EXPECT_GT(o.last.oom_in_s->mid, 5 * 86400);
}

// A load of 30 GiB on top of a leak that could continue for days is not a leak of 30 GiB per hour.
TEST(Judge, AJumpIsNoPartOfTheGrowthBeforeIt) {
  const Outcome o = watch(
      [](double t) {
        return 20 * kGiB + std::max(0.0, t - 4 * 3600) * 5 * kMiB / 60 + (t >= 6.7 * 3600 ? 30 * kGiB : 0);
      },
      8 * 3600, 10, 80 * kGiB);
  EXPECT_FALSE(o.raised_s) << o.at_raise.because;
}

// A load in pieces may raise an alert; a leak that could continue for a month must not keep it active.
TEST(Judge, GrowthBeyondTheHorizonHoldsNoAlert) {
  const Outcome o = watch(
      [](double t) {
        const double pieces = std::clamp(std::floor((t - 6.7 * 3600) / 30) + 1, 0.0, 10.0);
        return 20 * kGiB + std::max(0.0, t - 4 * 3600) * kMiB / 60 + pieces * 3 * kGiB;
      },
      9 * 3600, 10, 80 * kGiB);
  EXPECT_FALSE(o.last.leak) << o.last.because;
  EXPECT_FALSE(o.raised_s && !o.cleared_s) << o.at_raise.because;
}

TEST(Judge, FewSamplesAreTooShort) {
  const Outcome o = watch([](double t) { return 8 * kGiB + 100 * kMiB * t; }, 15, 1);
  EXPECT_EQ(o.last.state, State::too_short);
  EXPECT_FALSE(o.last.leak);
}

/// Two judges with equal input except for a transformation agree on when to alert.
void expect_same_alerts(const std::vector<double>& bytes, double period_s,
                        const std::function<void(Detector&, double, double)>& other) {
  const auto plain = find_detector("judge")->make({}, kSecondsAndBytes);
  const auto changed = find_detector("judge")->make({}, kSecondsAndBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const double t = static_cast<double>(i) * period_s;
    plain->observe(Timestamp{from_seconds(t)}, bytes[i]);
    other(*changed, t, bytes[i]);
    RC_ASSERT(plain->alerting() == changed->alerting());
  }
}

/// A leak, a sawtooth or a walk, in whole MiB.
std::vector<double> any_series() {
  const auto kind = *rc::gen::inRange(0, 3);
  const double rate = *rc::gen::inRange(1, 40);
  const auto count = static_cast<std::size_t>(*rc::gen::inRange(200, 1500));
  const auto jitter = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(-8, 9));
  std::vector<double> bytes(count);
  double level = 4096;
  for (std::size_t i = 0; i < count; ++i) {
    if (kind == 0) level += rate / 8;
    if (kind == 1) level = 4096 + std::fmod(static_cast<double>(i) * rate, 2048);
    if (kind == 2) level = std::max(1024.0, level + jitter[i]);
    bytes[i] = std::floor(level + (kind == 2 ? 0 : jitter[i])) * kMiB;
  }
  return bytes;
}

RC_GTEST_PROP(JudgeProperty, AnIdenticalDuplicateChangesNothing, ()) {
  expect_same_alerts(any_series(), 5, [](Detector& d, double t, double b) {
    d.observe(Timestamp{from_seconds(t)}, b);
    d.observe(Timestamp{from_seconds(t)}, b);
  });
}

RC_GTEST_PROP(JudgeProperty, AShiftInTimeChangesNothing, ()) {
  const double shift = *rc::gen::inRange(0, 2'000'000'000);
  expect_same_alerts(any_series(), 5,
                     [&](Detector& d, double t, double b) { d.observe(Timestamp{from_seconds(t + shift)}, b); });
}

RC_GTEST_PROP(JudgeProperty, NeverAnEndForAConstantSeries, ()) {
  const double bytes = static_cast<double>(*rc::gen::inRange(0, 80000)) * kMiB;
  const auto judge = find_detector("judge")->make({}, kSecondsAndBytes);
  judge->set_limit(80 * kGiB);
  for (int i = 0; i < 2000; ++i) judge->observe(Timestamp{from_seconds(i * 7.0)}, bytes);
  RC_ASSERT(!judge->finding().oom_in_s);
  RC_ASSERT(!judge->finding().leak);
}

}  // namespace
}  // namespace vramtrack
