// When people are notified, and when a notification is withdrawn: engine/paging.hpp.
#include "engine/paging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/units.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;

constexpr double kMinute_s = 60;
constexpr double kHour_s = 3600;

/// A leak that has grown for ten hours on half of a card.
PageFacts leak(double left_s) {
  PageFacts f;
  f.stage = Stage::confirmed;
  f.leak = true;
  f.left_s = Interval{0.8 * left_s, left_s, 1.25 * left_s};
  f.grown_s = 10 * kHour_s;
  f.lead_s = kHour_s;
  f.period_s = 10;
  f.full_ratio = 0.5;
  return f;
}

PageDecision decide(const PageFacts& f) {
  return decide_page(f, kSecondsAndBytes);
}

PageFacts paged(PageFacts f) {
  f.paged = true;
  return f;
}

TEST(Paging, ASuspicionWakesNobody) {
  PageFacts f = leak(10 * kMinute_s);
  f.leak = false;
  f.stage = Stage::suspected;
  EXPECT_EQ(decide(f).what, Paging::suspected);
  f.stage = Stage::none;
  EXPECT_EQ(decide(f).what, Paging::nothing);
}

TEST(Paging, ALeakIsToldAndPagedWhenTheLowSideComesNear) {
  const PageDecision far = decide(leak(10 * kHour_s));
  EXPECT_EQ(far.what, Paging::shown);
  EXPECT_EQ(far.why, "memory lasts at least 8h 00m; an alert is raised when 60 min are left (lead-time)");
  EXPECT_EQ(decide(leak(1.3 * kHour_s)).what, Paging::shown);
  const PageDecision near = decide(leak(1.2 * kHour_s));
  EXPECT_EQ(near.what, Paging::page) << "the low side, not the middle";
  EXPECT_EQ(near.why, "memory may run out in 58m; lead-time is 1h 00m");
}

TEST(Paging, AShortLifeGivesItsLastThird) {
  PageFacts f = leak(25 * kMinute_s);
  f.grown_s = 20 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::shown) << "20 min of 45 are left by the low side";
  EXPECT_THAT(decide(f).why, HasSubstr("an alert is raised when 15 min are left, the last third of this growth, "
                                       "which is less than lead-time (1h 00m)"));
  f = leak(18 * kMinute_s);
  f.grown_s = 27 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::page);
  EXPECT_THAT(decide(f).why, HasSubstr("within the last third of this growth; lead-time is 1h 00m"));
}

TEST(Paging, WhatKnowsMoreThanTheCurveNeedNotWait) {
  for (const Basis basis : {Basis::siblings, Basis::runs, Basis::lifetimes, Basis::allocator}) {
    PageFacts f = leak(40 * kHour_s);
    f.basis = basis;
    EXPECT_EQ(decide(f).what, Paging::page);
    EXPECT_FALSE(decide(f).why.empty());
  }
}

TEST(Paging, WithoutACapacityCertaintyIsEnough) {
  PageFacts f = leak(1);
  f.left_s.reset();
  EXPECT_EQ(decide(f).what, Paging::page);
  EXPECT_EQ(decide(f).why, "it is not known how much time is left");
}

TEST(Paging, WhatSlowsDownSoThatItStopsBeforeTheMemoryEndsIsNoPage) {
  PageFacts f = leak(20 * kMinute_s);
  f.free_bytes = 8.0 * kGiB;
  f.left_bytes = 6.0 * kGiB;
  EXPECT_EQ(decide(f).what, Paging::shown);
  EXPECT_EQ(decide(f).why, "the growth is slowing down: it will add at most 6.0 GiB, and 8.0 GiB are free");
  f.left_bytes = 9.0 * kGiB;
  EXPECT_EQ(decide(f).what, Paging::page) << "memory runs out before that";
  f.left_bytes = 6.0 * kGiB;
  f.basis = Basis::allocator;
  EXPECT_EQ(decide(f).what, Paging::page);
}

TEST(Paging, AHeightAtWhichAnEarlierRunStoodIsNoPage) {
  PageFacts f = leak(20 * kMinute_s);
  f.used_bytes = 70.0 * kGiB;
  f.free_bytes = 10.0 * kGiB;
  f.stood_bytes = 72.0 * kGiB;
  EXPECT_EQ(decide(f).what, Paging::shown);
  EXPECT_EQ(decide(f).why, "an earlier run levelled off at 72.0 GiB");
  f.used_bytes = 74.0 * kGiB;
  EXPECT_EQ(decide(f).what, Paging::page) << "this one goes beyond";
  f.used_bytes = 70.0 * kGiB;
  f.stood_bytes = 79.0 * kGiB;
  EXPECT_EQ(decide(f).what, Paging::page) << "there is no room to go beyond";
}

TEST(Paging, TheEndOfARecordingWakesNobody) {
  PageFacts f = leak(1 * kMinute_s);
  f.stage = Stage::confirmed_at_end;
  EXPECT_EQ(decide(f).what, Paging::shown);
}

TEST(Paging, WithinTheBandOfBeforeNoEndIsNear) {
  PageFacts f = leak(6 * kMinute_s);
  f.in_band = true;
  EXPECT_EQ(decide(f).what, Paging::shown);
  EXPECT_EQ(decide(paged(f)).what, Paging::page) << "and what was paged outside of it stands";
}

TEST(Paging, AnAlertOutlivesItsGrowthByNoMoreThanHalfOfWhatIsLeft) {
  PageFacts f = paged(leak(20 * kMinute_s));
  f.still_s = 9 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::page);
  f.still_s = 11 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::withdraw);
  EXPECT_EQ(decide(f).why, "the growth did not continue: memory has not grown for 11 min");
  f.usual_pause_s = 6 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::page) << "it has always grown in steps";
  f.still_s = 13 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::withdraw);
  f = paged(leak(30));
  f.still_s = 59;
  EXPECT_EQ(decide(f).what, Paging::page);
  f.still_s = 61;
  EXPECT_EQ(decide(f).what, Paging::withdraw) << "a minute at least";
  f.period_s = 60;
  EXPECT_EQ(decide(f).what, Paging::page) << "and two samples";
}

TEST(Paging, WhatAPolicyHoldsStandsStillByNoDoingOfItsOwn) {
  PageFacts f = paged(leak(20 * kMinute_s));
  f.still_s = 10 * kHour_s;
  EXPECT_EQ(decide(f).what, Paging::withdraw);
  f.held = true;
  EXPECT_EQ(decide(f).what, Paging::page);
  f.paged = false;
  EXPECT_NE(decide(f).what, Paging::page) << "and is no reason to raise one";
}

TEST(Paging, NothingIsRaisedThatStandsStill) {
  PageFacts f = leak(20 * kMinute_s);
  f.still_s = 6 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::shown);
  EXPECT_THAT(decide(f).why, HasSubstr("memory has not grown for 6 min"));
  f.of_device = true;
  EXPECT_THAT(decide(f).why, HasSubstr("others release as much as the process takes"));
}

TEST(Paging, NearAFullCardAPauseOrAQuietNightIsNoReason) {
  PageFacts f = paged(leak(15 * kMinute_s));
  f.full_ratio = 0.945;
  f.still_s = 8 * kHour_s;
  EXPECT_EQ(decide(f).what, Paging::page);
  f.leak = false;
  f.left_s.reset();
  EXPECT_EQ(decide(f).what, Paging::page) << "although the curve shows no leak any more";
  f.given_back = true;
  EXPECT_EQ(decide(f).what, Paging::withdraw);
  f.given_back = false;
  f.still_s = 13 * kHour_s;
  EXPECT_EQ(decide(f).what, Paging::withdraw) << "a night is over then";
  f.still_s = 0;
  f.full_ratio = 0.8;
  EXPECT_EQ(decide(f).what, Paging::withdraw);
}

TEST(Paging, WithoutALeadTimeNobodyWaits) {
  PageFacts f = leak(40 * kHour_s);
  EXPECT_EQ(decide(f).what, Paging::shown);
  f.lead_s = 0;
  EXPECT_EQ(decide(f).what, Paging::page);
}

PageFacts any(std::mt19937_64& draw) {
  const auto up_to = [&](double most) { return std::uniform_real_distribution<double>(0, most)(draw); };
  PageFacts f = leak(up_to(20 * kHour_s));
  f.stage = static_cast<Stage>(draw() % 4);
  f.leak = f.stage >= Stage::confirmed && draw() % 4 != 0;
  f.basis = static_cast<Basis>(draw() % 5);
  f.grown_s = up_to(30 * kHour_s);
  f.lead_s = up_to(3 * kHour_s);
  f.still_s = draw() % 2 == 0 ? 0 : up_to(3 * kHour_s);
  f.usual_pause_s = draw() % 2 == 0 ? 0 : up_to(kHour_s);
  f.period_s = up_to(60);
  f.full_ratio = up_to(1);
  f.in_band = draw() % 4 == 0;
  f.given_back = draw() % 4 == 0;
  f.paged = draw() % 2 == 0;
  return f;
}

TEST(Paging, WithLessTimeLeftAPageStaysAPage) {
  std::mt19937_64 draw(42);
  int pages = 0;
  for (int i = 0; i < 20000; ++i) {
    PageFacts f = any(draw);
    f.still_s = 0;  // how long it may stand still depends on the time left
    f.left_s = Interval{1, 2, 3};
    std::optional<bool> was;
    for (const double left_s : {20 * kHour_s, 5 * kHour_s, 2 * kHour_s, kHour_s, 10 * kMinute_s, kMinute_s, 1.0}) {
      f.left_s = Interval{0.7 * left_s, left_s, 1.4 * left_s};
      const bool is = decide(f).what == Paging::page;
      if (was.value_or(false)) {
        ASSERT_TRUE(is) << left_s;
      }
      was = is;
      pages += is ? 1 : 0;
    }
  }
  EXPECT_GT(pages, 1000);
}

TEST(Paging, NoAlertStandsOverAnHoursFlatLineThatIsFarFromFull) {
  std::mt19937_64 draw(43);
  for (int i = 0; i < 20000; ++i) {
    PageFacts f = any(draw);
    f.still_s = kHour_s + 1;
    if (is_nearly_full(f.full_ratio)) continue;
    ASSERT_NE(decide(f).what, Paging::page) << i;
  }
}

TEST(Paging, EveryDecisionThatPeopleSeeHasAReason) {
  std::mt19937_64 draw(44);
  for (int i = 0; i < 20000; ++i) {
    const PageFacts f = any(draw);
    const PageDecision decision = decide(f);
    const bool is_seen = decision.what == Paging::shown || decision.what == Paging::withdraw ||
                         (decision.what == Paging::page && !f.paged);
    if (is_seen) {
      ASSERT_FALSE(decision.why.empty()) << i;
    }
  }
}

TEST(Standstill, MeasuresSinceTheLastMove) {
  Standstill still;
  EXPECT_EQ(still.still_s(), 0);
  const auto at = [](double s) { return Timestamp{} + from_seconds(s); };
  double bytes = 10 * kGiB;
  for (int minute = 0; minute <= 60; ++minute) {
    if (minute % 5 == 0 && minute <= 30) bytes += 0.5 * kGiB;
    const double spike_bytes = minute == 50 || minute == 51 ? 5 * kGiB : 0;
    still.observe(at(60.0 * minute), bytes + spike_bytes + (minute % 2 == 0 ? 0 : 10 * kMiB), {0.1 * kGiB, 240});
  }
  EXPECT_NEAR(still.still_s(), 1800, 480) << "neither jitter nor spikes are moves";
  EXPECT_NEAR(still.usual_s(), 300, 60);
}

TEST(Standstill, ALineIsFlatSinceItCameToItsLevelAndNotSinceThatIsKnown) {
  Standstill still;
  const auto at = [](double s) { return Timestamp{} + from_seconds(s); };
  constexpr double kStep_s = 10;
  for (double s = 0; s <= 2 * kHour_s; s += kStep_s) {
    const double bytes = std::min(s, kHour_s) * kMiB;
    still.observe(at(s), bytes, {300 * kMiB, 600});
    if (s > 1300 && s <= kHour_s) {
      EXPECT_EQ(still.flat_s(), 0) << s;
    }
    if (s > kHour_s + 1200) {
      EXPECT_NEAR(still.flat_s(), s - kHour_s, 300) << s;
      EXPECT_LE(still.still_s(), still.flat_s() - 590) << "the lowest of one to two windows lags behind by as much";
    }
  }
}

TEST(Standstill, AFallTakesBackWhatWasReached) {
  Standstill still;
  const auto at = [](double s) { return Timestamp{} + from_seconds(s); };
  for (int minute = 0; minute <= 90; ++minute) {
    const double bytes = (minute < 20 ? 1.0 : minute < 30 ? 4.0 : minute < 40 ? 2.0 : 3.0) * kGiB;
    still.observe(at(60.0 * minute), bytes, {0.1 * kGiB, 600});
  }
  EXPECT_DOUBLE_EQ(still.flat_s(), 50 * kMinute_s);
}

TEST(Standstill, IsFlatForAsLongAsItStaysWithinAQuantum) {
  Standstill still;
  const auto at = [](double s) { return Timestamp{} + from_seconds(s); };
  const auto see = [&](double minute, double gib) { still.observe(at(60 * minute), gib * kGiB, {0.1 * kGiB, 600}); };
  for (int minute = 0; minute <= 60; ++minute) see(minute, 1);
  EXPECT_GT(still.flat_s(), 40 * kMinute_s);
  see(61, 1.05);
  EXPECT_GT(still.flat_s(), 40 * kMinute_s) << "less than a quantum";
  see(62, 1.2);
  EXPECT_EQ(still.flat_s(), 0) << "it may be a move";
  see(64, 1);
  EXPECT_DOUBLE_EQ(still.flat_s(), 2 * kMinute_s);
  EXPECT_GT(still.still_s(), 40 * kMinute_s) << "it was a spike";
  see(65, 0.8);
  EXPECT_EQ(still.flat_s(), 0) << "what falls may rise from fall to fall";
}

TEST(Paging, AUsualPauseIsNoStandstill) {
  PageFacts f = leak(1.2 * kHour_s);
  f.still_s = f.flat_s = 45 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::shown);
  f.usual_pause_s = 50 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::page);
  f.still_s = f.flat_s = 55 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::shown);
}

TEST(Paging, NothingIsRaisedOverALineThatIsFlatThoughItsLastMoveIsKnownForLessTime) {
  PageFacts f = leak(40 * kMinute_s);
  f.still_s = 5 * kMinute_s;
  f.flat_s = 9 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::page);
  f.flat_s = 11 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::shown);
  EXPECT_THAT(decide(f).why, HasSubstr("memory has not grown for 11 min"));
  f = paged(f);
  EXPECT_EQ(decide(f).what, Paging::page) << "what is not known to be held yet may be a move";
}

TEST(Move, ATwentiethOfWhatIsLeftOrFiveMinutesOfGrowth) {
  const Interval hour{0, kHour_s, 0};
  EXPECT_DOUBLE_EQ(Move::of(20 * kGiB, 1 * kGiB, 0, hour).quantum_bytes, 1 * kGiB);
  EXPECT_DOUBLE_EQ(Move::of(20 * kGiB, kGiB / 3000, 0, hour).quantum_bytes, 0.1 * kGiB);
  EXPECT_DOUBLE_EQ(Move::of(std::nullopt, kGiB / 300, 0, {}).quantum_bytes, 1 * kGiB);
  EXPECT_DOUBLE_EQ(Move::of(20 * kGiB, 0, 0, {}).quantum_bytes, 1 * kGiB) << "no rate is known";
  EXPECT_DOUBLE_EQ(Move::of(20 * kGiB, 0, 10 * kHour_s, hour).window_s, 450);
  EXPECT_DOUBLE_EQ(Move::of(20 * kGiB, 0, 160, hour).window_s, 20);
  EXPECT_DOUBLE_EQ(Move::of(20 * kGiB, 0, 10 * kHour_s, {}).window_s, 600);
}

TEST(Move, OfCyclesNoLessThanTheTimeBetweenTwoLows) {
  const Interval hour{0, kHour_s, 0};
  EXPECT_DOUBLE_EQ(Move::of(20 * kGiB, 0, 10 * kHour_s, hour, 40 * kMinute_s).window_s, 40 * kMinute_s);
  EXPECT_DOUBLE_EQ(Move::of(20 * kGiB, 0, 10 * kHour_s, hour, kMinute_s).window_s, 450);
}

TEST(Paging, BetweenTwoLowsOfCyclesNothingCanBeSeenToMove) {
  PageFacts f = leak(20 * kMinute_s);
  f.still_s = 35 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::shown);
  f.cycle_s = 40 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::page);
  f = paged(f);
  f.still_s = 79 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::page);
  f.still_s = 81 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::withdraw);
}

TEST(Paging, ARiseOfMinutesIsNone) {
  PageFacts f = leak(2 * kMinute_s);
  f.grown_s = 3 * kMinute_s;
  f.least_s = 5 * kMinute_s;
  EXPECT_EQ(decide(f).what, Paging::shown);
  EXPECT_EQ(decide(f).why, "it has grown for 3 min; an alert requires 5 min");
  EXPECT_EQ(decide(paged(f)).what, Paging::page);
}

}  // namespace
}  // namespace vramtrack
