// Facts other than the curve: the definition of a load, and its use by the judge.
#include "detect/facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "../at.hpp"
#include "core/units.hpp"
#include "detect/detector.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1024 * kMiB;

TEST(Track, TellsTheIncreaseOfAnyStretchThatItHasSeen) {
  Track track;
  EXPECT_FALSE(track.increase(at(0), at(10)));
  for (int s = 0; s <= 3600; s += 2) track.observe(at(s), 3.0 * s);
  EXPECT_NEAR(track.increase(at(600), at(1200)).value(), 1800, 1e-6);
  EXPECT_NEAR(track.increase(at(5), at(6)).value(), 3, 1e-6);
  EXPECT_FALSE(track.increase(at(3000), at(6000))) << "most of that lies in the future";
  track.observe(at(3602), 10);
  EXPECT_FALSE(track.increase(at(600), at(1200))) << "a total that falls is another program's";
}

TEST(Track, KeepsALongPastMoreCoarsely) {
  Track track;
  for (int s = 0; s <= 7 * 86400; s += 10) track.observe(at(s), s);
  EXPECT_NEAR(track.increase(at(0), at(7 * 86400)).value(), 7 * 86400, 1e-6);
  EXPECT_NEAR(track.increase(at(7 * 86400 - 600), at(7 * 86400)).value(), 600, 1e-6);
}

TEST(Track, WorkBeginsWithTwoReadingsInARow) {
  Track track;
  double busy_s = 0;
  for (int s = 0; s <= 1200; s += 15) {
    track.observe(at(s), busy_s);
    if (s == 300 || s >= 600) busy_s += 0.5 * 15;
  }
  EXPECT_EQ(track.first_at_rate(0.1, at(0)), at(600)) << "one reading is no work";
  EXPECT_EQ(track.first_at_rate(0.1, at(900)), at(900));
  EXPECT_FALSE(track.first_at_rate(0.6, at(0)));
}

TEST(Facts, WhatIsReadMatchesWithinAFactorOfTwo) {
  const auto matches = [](double read_bytes, std::size_t devices = 1) {
    Facts facts;
    facts.set_devices(devices);
    for (int s = 0; s <= 3600; s += 30) facts.read(at(s), read_bytes * s / 3600);
    return facts.load(at(0), at(0), at(3600), 10 * kGiB, false).has_value();
  };
  EXPECT_TRUE(matches(10 * kGiB));
  EXPECT_TRUE(matches(5.1 * kGiB));
  EXPECT_TRUE(matches(19 * kGiB));
  EXPECT_FALSE(matches(4.9 * kGiB));
  EXPECT_FALSE(matches(21 * kGiB));
  EXPECT_FALSE(matches(0));
  EXPECT_TRUE(matches(38 * kGiB, 4)) << "spread over four devices";
}

TEST(Facts, ATrainingThatReadsAsMuchAsItLeaksIsNoLoad) {
  Facts facts;
  for (int s = 0; s <= 7200; s += 30) {
    facts.read(at(s), 3 * kMiB * s);
    facts.busy(at(s), 0.9);
  }
  EXPECT_FALSE(facts.load(at(0), at(1800), at(7200), 5400 * 3 * kMiB, false));
  EXPECT_TRUE(facts.load(at(0), at(6000), at(7200), 1200 * 3 * kMiB, false)) << "a server may load while it works";
}

TEST(Facts, BeforeTheFirstWork) {
  Facts facts;
  for (int s = 0; s <= 3600; s += 15) facts.busy(at(s), s > 1500 ? 0.8 : s % 300 == 0 ? 0.03 : 0);
  EXPECT_TRUE(facts.load(at(0), at(60), at(1500), 40 * kGiB, false));
  EXPECT_FALSE(facts.load(at(0), at(60), at(1500), 40 * kGiB, true)) << "it has all but filled the memory";
  EXPECT_TRUE(facts.load(at(0), at(60), at(1800), 40 * kGiB, false)) << "most of it was before the work";
  EXPECT_FALSE(facts.load(at(0), at(60), at(1800), 40 * kGiB, false)->goes_on);
  EXPECT_FALSE(facts.load(at(0), at(1400), at(2400), 4 * kGiB, false)) << "what follows is judged by itself";
  EXPECT_FALSE(facts.load(at(0), at(1600), at(1800), 4 * kGiB, false));
}

TEST(Facts, NothingIsReadIntoWhatWasNotSeen) {
  Facts facts;
  EXPECT_FALSE(facts.load(at(0), at(0), at(600), kGiB, false));
  EXPECT_FALSE(facts.worked(at(0), at(600)));
  facts.busy(at(600), 0);
  facts.busy(at(615), 0);
  EXPECT_FALSE(facts.load(at(0), at(0), at(615), kGiB, false));
  // Another program has started: the load of the GPU no longer shows whether this one works.
  facts.forget_busy();
  EXPECT_FALSE(facts.load(at(0), at(600), at(615), kGiB, false));
}

TEST(Facts, WhatWasReadBeforeTheWatchCounts) {
  const auto loads = [](std::optional<double> began_s) {
    Facts facts;
    if (began_s) facts.set_begin(at(*began_s));
    for (int s = 0; s <= 600; s += 30) facts.read(at(s), (3 + s / 60.0) * kGiB);
    return facts.load(at(-180), at(-180), at(600), 13 * kGiB, false).has_value();
  };
  EXPECT_TRUE(loads(-180));
  EXPECT_FALSE(loads({})) << "a quarter of it was not seen";
}

TEST(Facts, WhetherAProgramWorkedInHoursThatWereNotSeenIsNotKnown) {
  Facts facts;
  for (int s = 0; s <= 900; s += 15) facts.busy(at(s), 0);
  EXPECT_TRUE(facts.load(at(-180), at(60), at(900), 10 * kGiB, false));
  EXPECT_FALSE(facts.load(at(-9 * 3600), at(60), at(900), 10 * kGiB, false));
}

struct Watched {
  bool suspected = false;
  std::optional<double> raised_s;
  bool loading = false;
  Finding last;
};

/// An 80 GiB card, read every 15 s. `busy` below 0: not reported. `age_s`: the program's age when the watch begins, if
/// known.
Watched watch(const std::function<double(double)>& bytes, double duration_s, const std::function<double(double)>& busy,
              ProgramKind kind = ProgramKind::unknown, std::optional<double> age_s = {}) {
  const auto judge = find_detector("judge")->make({}, kSecondsAndBytes);
  judge->set_limit(80 * kGiB);
  Facts facts;
  facts.set_kind(kind);
  judge->set_facts(&facts);
  if (age_s) facts.set_begin(at(-*age_s));
  Watched out;
  for (double s = 0; s <= duration_s; s += 15) {
    if (const double share = busy(s); share >= 0) facts.busy(at(s), share);
    judge->observe(at(s), bytes(s));
    out.suspected = out.suspected || judge->suspecting();
    if (judge->alerting() && !out.raised_s) out.raised_s = s;
    const Finding f = judge->finding();
    if (s > 300 && f.state == State::loading) out.loading = true;
    if (s < 1000) out.last = f;
  }
  return out;
}

/// From nothing to 60 GiB between minutes 2 and 22.
double load(double s) {
  return (0.5 + 60 * std::clamp((s - 120) / 1200, 0.0, 1.0)) * kGiB;
}

TEST(Loading, IsAStateOfItsOwnAndNoSuspicion) {
  const Watched w = watch(load, 7200, [](double s) { return s < 1320 ? 0.0 : 0.9; });
  EXPECT_TRUE(w.loading);
  EXPECT_FALSE(w.suspected);
  EXPECT_FALSE(w.raised_s);
  EXPECT_EQ(w.last.state, State::loading);
  EXPECT_THAT(w.last.because, HasSubstr("loading, "));
  EXPECT_THAT(w.last.because, HasSubstr("the GPU has not begun to work"));
}

TEST(Loading, InStagesToo) {
  const auto staged = [](double s) {
    double gib = 0.5;
    for (const double begin : {60.0, 420.0, 900.0}) gib += 18 * std::clamp((s - begin) / 300, 0.0, 1.0);
    return gib * kGiB;
  };
  EXPECT_FALSE(watch(staged, 7200, [](double s) { return s < 1200 ? 0.02 : 0.8; }).suspected);
}

TEST(Loading, ByTheCurveAloneIsNotConfirmed) {
  EXPECT_FALSE(watch(load, 7200, [](double) { return -1.0; }).raised_s);
}

TEST(Loading, ALeakThatFollowsIsFound) {
  // 20 GiB an hour from minute 32 on.
  const auto leak = [](double s) { return load(s) + std::max(0.0, s - 1920) * 20 / 3600 * kGiB; };
  const Watched w = watch(leak, 5000, [](double s) { return s < 1320 ? 0.0 : 0.9; });
  ASSERT_TRUE(w.raised_s);
  EXPECT_GT(*w.raised_s, 1920);
  EXPECT_LT(*w.raised_s, 1920 + 900);
}

TEST(Loading, AProgramThatWorksWhileItGrowsIsNotLoading) {
  // From the first minute on, until the card is full after an hour.
  const auto leak = [](double s) { return (0.5 + 80 * s / 3600) * kGiB; };
  const Watched working = watch(leak, 3500, [](double) { return 0.9; });
  const Watched unknown = watch(leak, 3500, [](double) { return -1.0; });
  ASSERT_TRUE(working.raised_s);
  ASSERT_TRUE(unknown.raised_s);
  EXPECT_LT(*working.raised_s, 1600);
  EXPECT_GT(*unknown.raised_s, 1700) << "half an hour may be a load";
}

TEST(Loading, WeightsAreConvertedByTheGpuThatTheyAreLoadedTo) {
  EXPECT_FALSE(watch(load, 7200, [](double) { return 0.6; }).raised_s);
}

TEST(Loading, AProgramThatWorkedBeforeHasItsWeights) {
  // Five minutes of work without growth, then two thirds of the card in 20 minutes.
  const auto leak = [](double s) { return (8 + 60 * std::clamp((s - 300) / 1200, 0.0, 1.0)) * kGiB; };
  EXPECT_TRUE(watch([&](double s) { return s < 15 ? kGiB : leak(s); }, 1800, [](double) { return 0.9; }).raised_s);
}

TEST(Loading, BeginsWithItsProgramAndNotWithTheFirstSampleOfTheJudge) {
  // 18 GiB in 18 minutes, all but the first three of which the judge sees; 2 GiB belong to another program.
  const auto raised = [](bool told) {
    const auto judge = find_detector("judge")->make({}, kSecondsAndBytes);
    judge->set_limit(24 * kGiB);
    bool any = false;
    for (double s = 180; s <= 1080; s += 10) {
      judge->observe(at(s), (2 + s / 60) * kGiB);
      if (s == 180 && told) judge->set_begin(at(0), 2 * kGiB);
      any = any || judge->alerting();
    }
    return any;
  };
  EXPECT_FALSE(raised(true));
  EXPECT_TRUE(raised(false));
}

TEST(Loading, IsSeenAsOneByAWatchThatBeginsInItsMiddle) {
  // The program began three minutes before the watch: it already holds 7.5 GiB, and loads 50 more in 17 minutes.
  const auto rest = [](double s) { return load(s + 180 + 90); };
  const auto unknown = [](double) { return -1.0; };
  const Watched known = watch(rest, 7200, unknown, ProgramKind::unknown, 180);
  EXPECT_FALSE(known.suspected);
  EXPECT_FALSE(known.raised_s);
  EXPECT_TRUE(watch(rest, 7200, unknown).raised_s) << "it may have held that for years";
  const Watched idle = watch(
      rest, 7200, [](double s) { return s < 1050 ? 0.0 : 0.9; }, ProgramKind::unknown, 180);
  EXPECT_TRUE(idle.loading);
  EXPECT_FALSE(idle.suspected);
}

TEST(Loading, AProgramThatHasRunForHoursIsNotInItsFirstPartOfLife) {
  // From the start of the watch on, until the card is full after an hour.
  const auto leak = [](double s) { return (0.5 + 80 * s / 3600) * kGiB; };
  const auto raised_s = [&](std::optional<double> age_s) {
    return watch(
               leak, 3500, [](double) { return -1.0; }, ProgramKind::unknown, age_s)
        .raised_s.value_or(1e9);
  };
  EXPECT_GT(raised_s({}), 1700) << "half an hour may be a load";
  EXPECT_GT(raised_s(60), 1700);
  EXPECT_LT(raised_s(9 * 3600), 1600);
}

TEST(Loading, ALeakOfAProgramThatNeverWorksIsFoundBeforeTheMemoryIsFull) {
  const auto leak = [](double s) { return (0.5 + 80 * s / 3600) * kGiB; };
  EXPECT_TRUE(watch(leak, 3570, [](double) { return 0.0; }).raised_s);
}

TEST(Mornings, AreOnlyWhereThereAreClients) {
  // 70 GiB in 12 hours, straight, on the first day of the series; its load ended in the first minute.
  const auto rise = [](double s) { return (s < 60 ? 0.3 : 5 + 70 * std::max(0.0, s - 3600) / 43200) * kGiB; };
  const auto raised_s = [&](ProgramKind kind) {
    return watch(
               rise, 40000, [](double) { return -1.0; }, kind)
        .raised_s.value_or(1e9);
  };
  const double training = raised_s(ProgramKind::training);
  const double unknown = raised_s(ProgramKind::unknown);
  EXPECT_LT(training, unknown);
  EXPECT_EQ(training, raised_s(ProgramKind::batch));
  EXPECT_LE(unknown, raised_s(ProgramKind::serving));
  EXPECT_LT(training, 3600 + 4 * 3600);
}

}  // namespace
}  // namespace vramtrack
