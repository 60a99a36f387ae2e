// What earlier runs show about a rise: the envelope, the words' weights, and their effect on the judge's verdict.
#include "detect/experience.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "../at.hpp"
#include "core/units.hpp"
#include "detect/detector.hpp"
#include "detect/run_curve.hpp"

namespace vramtrack {
namespace {

using Kind = ExperienceWord::Kind;
using Shape = std::function<double(double)>;
constexpr double kGiB = 1024 * kMiB;

FinishedRun run_of(const Shape& bytes, double duration_s, double begin_s, bool leaked = false) {
  RunCurve curve;
  for (double t = 0; t <= duration_s; t += 5) curve.observe(t, bytes(t));
  return curve.run(at(begin_s), at(begin_s + duration_s), leaked, false, true);
}

/// `n` runs, a day apart, each slightly different.
Program program_of(const Shape& bytes, double duration_s, int n, bool leaked = false) {
  Program program;
  for (int i = 0; i < n; ++i)
    add_run(program,
            run_of([&](double t) { return bytes(t) * (1 + 0.002 * i); }, duration_s, i * kSecondsPerDay, leaked));
  return program;
}

/// Straight to 12 GiB in 20 minutes, then level: a judge without experience suspects it.
double warm_up(double t) {
  return 1 * kGiB + 11 * kGiB * std::min(1.0, t / 1200);
}
/// The same, with a leak from the first hour on.
double leak_later(double t) {
  return warm_up(t) + std::max(0.0, t - 3600) * 2 * kMiB;
}
double leak_always(double t) {
  return 4 * kGiB + t * 1 * kMiB;
}

struct Watched {
  std::optional<double> raised_s;
  Finding last;
};

Watched watch(const Shape& bytes, double duration_s, const Program* program, double limit_bytes = 24 * kGiB) {
  const auto judge = find_detector("judge")->make({}, kSecondsAndBytes);
  Experience experience;
  if (program != nullptr) experience.set_program(std::make_shared<const ProgramExperience>(*program));
  const Timestamp begin = at(100 * kSecondsPerDay);
  experience.set_begin(begin);
  judge->set_experience(&experience);
  judge->set_limit(limit_bytes);
  Watched out;
  for (double t = 0; t <= duration_s; t += 5) {
    judge->observe(begin + from_seconds(t), bytes(t));
    if (judge->alerting() && !out.raised_s) out.raised_s = t;
  }
  out.last = judge->finding();
  return out;
}

// A straight rise of hours may be the first morning of a daily load, unless earlier runs or days show otherwise.
TEST(FirstMorning, IsNoneWhereEarlierRunsStoodStillAtThatAge) {
  const auto slow_leak = [](double t) { return warm_up(t) + std::max(0.0, t - 7200) * 0.6 * kMiB; };
  const Watched stranger = watch(slow_leak, 4 * 3600, nullptr, 80 * kGiB);
  EXPECT_FALSE(stranger.raised_s);
  EXPECT_EQ(stranger.last.stage, Stage::suspected) << stranger.last.because;
  EXPECT_NE(stranger.last.because.find("it may be the morning of a daily load"), std::string::npos)
      << stranger.last.because;
  const Program three = program_of(warm_up, 6 * 3600, 3);
  const Watched known = watch(slow_leak, 4 * 3600, &three, 80 * kGiB);
  ASSERT_TRUE(known.raised_s) << known.last.because;
  EXPECT_LE(*known.raised_s, 7200 + 3600);
}

TEST(FirstMorning, IsNoneWhereYesterdayIsKnown) {
  Experience experience;
  const Rise rise{at(kSecondsPerDay + 8 * 3600), at(kSecondsPerDay + 9 * 3600), 4 * kGiB, kGiB};
  EXPECT_FALSE(experience.knows_days(rise));
  for (int hour = 0; hour < 24; ++hour) experience.days().add_hour(at(hour * 3600.0), 4 * kGiB);
  EXPECT_TRUE(experience.knows_days(rise));
}

TEST(RunCurve, KeepsTheHighestFloorUpToEachAge) {
  RunCurve curve;
  for (int t = 0; t <= 3600; ++t) curve.observe(t, t % 60 == 7 ? 20 * kGiB : warm_up(t));  // with spikes
  const FinishedRun run = curve.run(at(0), at(3600), false, false, true);
  EXPECT_EQ(run.outcome, RunOutcome::settled);
  EXPECT_NEAR(run.settled_bytes, 12 * kGiB, 1 * kMiB);
  EXPECT_NEAR(run.peak_bytes, 20 * kGiB, 1 * kMiB);
  EXPECT_NEAR(run.warm_up_s, 1200, 90);
  ASSERT_EQ(run.points, 9U);  // 15 s x 2^8 = 3840 s
  // At 960 s the ramp is at 1 + 11 x 0.8 GiB; the floor of the last sixteenth is a minute old.
  EXPECT_NEAR(static_cast<double>(run.floor_bytes[6]), 9.8 * kGiB, 0.6 * kGiB);
  EXPECT_NEAR(static_cast<double>(run.floor_bytes[8]), 12 * kGiB, 1 * kMiB);
}

TEST(RunCurve, ARunThatStillRoseIsNobodysExample) {
  EXPECT_EQ(run_of(warm_up, 900, 0).outcome, RunOutcome::rising);
  EXPECT_EQ(run_of(warm_up, 2400, 0).outcome, RunOutcome::settled);
  EXPECT_EQ(run_of(leak_always, 900, 0).outcome, RunOutcome::rising);
  EXPECT_EQ(run_of(leak_always, 900, 0, true).outcome, RunOutcome::leaked);
  EXPECT_EQ(ProgramExperience(program_of(leak_always, 900, 3)).word({at(0), at(600), 0, kGiB}, at(0)).kind, Kind::none);
}

TEST(RunCurve, ARunThatRoseToItsEndIsNobodysExampleHoweverLongItWas) {
  const auto straight = [](double t) { return 1 * kGiB + t * 8 * kMiB; };
  for (double life_s = 60; life_s < 86400; life_s *= 1.07)
    EXPECT_EQ(run_of(straight, life_s, 0).outcome, RunOutcome::rising) << life_s;
}

TEST(RunCurve, WhatCameAfterTheEndIsNotOfTheRun) {
  RunCurve curve;
  const auto straight = [](double t) { return 1 * kGiB + t * 8 * kMiB; };
  for (int t = 0; t <= 600; t += 6) curve.observe(t, straight(t));
  curve.observe(606, kGiB / 2);
  const FinishedRun run = curve.run(at(0), at(600), false, false, true);
  EXPECT_EQ(run.outcome, RunOutcome::rising);
  EXPECT_GE(run.settled_bytes, straight(480));
}

TEST(Program, RanksOfOneJobAreOneRun) {
  Program program;
  for (int rank = 0; rank < 8; ++rank)
    add_run(program, run_of([&](double t) { return warm_up(t) + rank * 100 * kMiB; }, 3600, rank));
  EXPECT_EQ(program.runs, 1U);
  ASSERT_EQ(program.recent.size(), 1U);
  EXPECT_NEAR(program.recent.front().settled_bytes, 12 * kGiB + 700 * kMiB, 1 * kMiB);
  FinishedRun leaking = run_of(warm_up, 3600, 5);
  leaking.outcome = RunOutcome::leaked;
  add_run(program, leaking);
  EXPECT_EQ(program.leaked, 1U);
  add_run(program, leaking);
  EXPECT_EQ(program.leaked, 1U);
}

TEST(Program, OnlyTheLastRunsAreKept) {
  const Program program = program_of(warm_up, 3600, 25);
  EXPECT_EQ(program.runs, 25U);
  ASSERT_EQ(program.recent.size(), Program::kMostRuns);
  EXPECT_EQ(program.recent.back().begin, at(24 * kSecondsPerDay));
}

TEST(Program, IsKnownAsFarAsItWasThen) {
  Program program = program_of(warm_up, 3600, 3);
  FinishedRun leaking = run_of(warm_up, 3600, 3 * kSecondsPerDay, true);
  add_run(program, leaking);
  const auto then = as_known_at(program, at(2 * kSecondsPerDay));
  ASSERT_TRUE(then);
  EXPECT_EQ(then->runs, 2U);
  EXPECT_EQ(then->leaked, 0U);
  EXPECT_FALSE(as_known_at(program, at(1800)));
  EXPECT_EQ(*as_known_at(program, at(1e6)), program);
}

TEST(ProgramExperience, SaysWhereARiseLies) {
  const ProgramExperience three(program_of(warm_up, 3600, 3));
  // Within the envelope of three healthy runs: 3/4 of half of the odds against a leak, 1 - p over p with p = .2/4.57.
  const ExperienceWord inside = three.word({at(60), at(600), 2 * kGiB, 4 * kGiB}, at(0));
  EXPECT_EQ(inside.kind, Kind::inside);
  EXPECT_NEAR(inside.familiar, 0.75 * 0.5 * (1 - 0.0437) / 0.0437, 0.2);
  EXPECT_TRUE(inside.explains());
  // They were level at that age: below the level they had, but they did not rise.
  EXPECT_EQ(three.word({at(3000), at(3500), 6 * kGiB, 2 * kGiB}, at(0)).kind, Kind::below);
  const ExperienceWord left = three.word({at(2400), at(3500), 12 * kGiB, 3 * kGiB}, at(0));
  EXPECT_EQ(left.kind, Kind::left);
  EXPECT_GT(left.odds, 3);
  EXPECT_LE(left.odds, 16);
  // No run lived that long, so there is no word on the level.
  EXPECT_EQ(three.word({at(40000), at(50000), 6 * kGiB, 2 * kGiB}, at(0)).kind, Kind::none);
  EXPECT_EQ(three.describe(inside, kSecondsAndBytes)
                .find("; 3 earlier runs of this program settled at 12.0 GiB after 20 min"),
            0U)
      << three.describe(inside, kSecondsAndBytes);
}

TEST(ProgramExperience, OfRunsThatLeakedSpeaksForALeak) {
  const ExperienceWord word =
      ProgramExperience(program_of(leak_always, 7200, 3, true)).word({at(60), at(600), 4 * kGiB, kGiB}, at(0));
  EXPECT_EQ(word.kind, Kind::leaked);
  EXPECT_GT(word.odds, 4);
  EXPECT_EQ(word.familiar, 0);
}

/// A daily load: from 8 to 13 GiB between 6 and 11 o'clock, and back down in the evening.
double daily(double t) {
  const double hour = std::fmod(t / 3600, 24);
  if (hour < 6 || hour > 22) return 8 * kGiB;
  if (hour < 11) return (8 + (hour - 6)) * kGiB;
  return hour < 18 ? 13 * kGiB : (13 - 5 * (hour - 18) / 4) * kGiB;
}

Days days_of(const Shape& bytes, double until_s) {
  Days days;
  for (double t = 0; t < until_s; t += 60) days.observe(at(t), bytes(t));
  return days;
}

TEST(Days, KnowAMorningLikeThoseBefore) {
  const double h = 3600;
  const Rise morning{at(72 * h + 6 * h), at(72 * h + 10 * h), 8 * kGiB, 4 * kGiB};
  const Days::Seen seen = days_of(daily, 72 * h + 10 * h).like(morning);
  EXPECT_EQ(seen.known, 3);
  EXPECT_EQ(seen.alike, 3);
  // At night nothing rose; nor did the series ever rise to twice the level, or within an hour.
  EXPECT_EQ(days_of(daily, 96 * h).like({at(92 * h), at(95 * h), 8 * kGiB, 2 * kGiB}).alike, 0);
  EXPECT_EQ(days_of(daily, 82 * h).like({at(78 * h), at(82 * h), 8 * kGiB, 9 * kGiB}).alike, 0);
  // A leak that fills the memory every day and never releases it does not count as a day.
  EXPECT_EQ(days_of([](double t) { return 4 * kGiB + t * 20000; }, 82 * h)
                .like({at(78 * h), at(82 * h), 9 * kGiB, 0.2 * kGiB})
                .alike,
            0);
}

TEST(Days, OfAWeekAreKept) {
  Days days = days_of(daily, 30 * kSecondsPerDay);
  const double morning_s = 29 * kSecondsPerDay + 6 * 3600;
  EXPECT_EQ(days.like({at(morning_s), at(morning_s + 4 * 3600), 8 * kGiB, 4 * kGiB}).known, 7);
  Days late;
  for (double t = 30 * kSecondsPerDay; t < 31 * kSecondsPerDay; t += 60) late.observe(at(t), daily(t));
  late.prepend(days);
  EXPECT_EQ(
      late.like({at(morning_s + kSecondsPerDay), at(morning_s + kSecondsPerDay + 14400), 8 * kGiB, 4 * kGiB}).alike, 7);
}

TEST(JudgeWithExperience, AMorningLikeYesterdaysIsNone) {
  // Yesterday's level was slightly lower: today's is new territory, and as straight as a leak.
  const Shape load = [](double t) {
    return 8 * kGiB + (daily(t) - 8 * kGiB) * (1 + 0.25 * std::floor(t / kSecondsPerDay));
  };
  const auto raised_on_second_day = [&](bool with_days) {
    const auto judge = find_detector("judge")->make({}, kSecondsAndBytes);
    Experience experience;
    if (with_days) judge->set_experience(&experience);
    judge->set_limit(24 * kGiB);
    bool raised = false;
    for (double t = 0; t < 1.5 * kSecondsPerDay; t += 30) {
      judge->observe(at(t), load(t));
      experience.days().observe(at(t), load(t));
      raised |= judge->alerting() && t > kSecondsPerDay;
    }
    return raised;
  };
  EXPECT_FALSE(raised_on_second_day(true));
}

RC_GTEST_PROP(ProgramExperience, ItsWordsAreBounded, ()) {
  Program program;
  const int runs = *rc::gen::inRange(0, 14);
  for (int i = 0; i < runs; ++i) {
    const double top = *rc::gen::inRange(1, 80) * kGiB;
    const double ramp_s = *rc::gen::inRange(10, 5000);
    add_run(program, run_of([&](double t) { return top * std::min(1.0, t / ramp_s); }, *rc::gen::inRange(20, 9000),
                            i * kSecondsPerDay, *rc::gen::arbitrary<bool>()));
  }
  const double start_s = *rc::gen::inRange(0, 20000);
  const Rise rise{at(start_s), at(start_s + *rc::gen::inRange(1, 20000)), *rc::gen::inRange(0, 80) * kGiB,
                  *rc::gen::inRange(1, 80000) * kMiB};
  const auto begin = *rc::gen::arbitrary<bool>() ? std::optional(at(0)) : std::nullopt;
  const ExperienceWord word = ProgramExperience(program).word(rise, begin);
  RC_ASSERT(word.odds >= 1.0 / 8 && word.odds <= 16);
  RC_ASSERT(word.familiar >= 0 && word.familiar <= 16);
  const double p = *rc::gen::inRange(1, 999) / 1000.0;
  const double with = with_experience(p, *rc::gen::inRange(0, 1000) / 100.0, word);
  RC_ASSERT(with > 0 && with < 1);
  if (runs == 0) RC_ASSERT(with == p);
}

TEST(JudgeWithExperience, AWarmUpThatAlarmsForAStrangerIsOneWithHealthyPredecessors) {
  // Up to 20 of 24 GiB, straight and for an hour: the first time, it looks like a leak.
  const Shape ramp = [](double t) { return 2 * kGiB + 18 * kGiB * std::min(1.0, t / 3600); };
  EXPECT_TRUE(watch(ramp, 7200, nullptr).raised_s);
  for (const int runs : {3, 10}) {
    const Program program = program_of(ramp, 7200, runs);
    EXPECT_FALSE(watch(ramp, 7200, &program).raised_s) << runs;
    const Watched midway = watch(ramp, 2400, &program);
    EXPECT_EQ(midway.last.state, State::warming_up) << runs;
    EXPECT_NE(midway.last.because.find("earlier runs of this program settled at 20."), std::string::npos)
        << midway.last.because;
  }
}

TEST(JudgeWithExperience, ALeakAboveHealthyPredecessorsIsConfirmedSooner) {
  // A slow leak that begins at the end of the warm-up, so that without experience it might be one more ramp.
  const Shape healthy = [](double t) { return 1 * kGiB + 7 * kGiB * std::min(1.0, t / 600); };
  const Shape leak = [&](double t) { return healthy(t) + std::max(0.0, t - 600) * 0.8 * kMiB; };
  const Watched stranger = watch(leak, 5 * 3600, nullptr);
  ASSERT_TRUE(stranger.raised_s);
  for (const int runs : {3, 10}) {
    const Program program = program_of(healthy, 6 * 3600, runs);
    const Watched known = watch(leak, 5 * 3600, &program);
    ASSERT_TRUE(known.raised_s) << runs;
    EXPECT_LT(*known.raised_s, *stranger.raised_s) << runs;
    EXPECT_NE(known.last.because.find("earlier runs of this program went no higher than"), std::string::npos)
        << known.last.because;
  }
}

TEST(JudgeWithExperience, ALeakThatEveryRunHadIsStillALeak) {
  const Watched stranger = watch(leak_always, 4 * 3600, nullptr);
  ASSERT_TRUE(stranger.raised_s);
  for (const int runs : {1, 3, 10}) {
    const Program program = program_of(leak_always, 4 * 3600, runs, true);
    const Watched known = watch(leak_always, 4 * 3600, &program);
    ASSERT_TRUE(known.raised_s) << runs;
    EXPECT_LE(*known.raised_s, *stranger.raised_s) << runs;
    EXPECT_NE(known.last.because.find("leaked"), std::string::npos) << known.last.because;
  }
}

TEST(JudgeWithExperience, ALeakAfterALongHealthyTimeIsFoundThoughPredecessorsWereHealthy) {
  const Program program = program_of(warm_up, 3 * 3600, 10);
  const Watched known = watch(leak_later, 6000, &program);
  const Watched stranger = watch(leak_later, 6000, nullptr);
  ASSERT_TRUE(stranger.raised_s);
  ASSERT_TRUE(known.raised_s);
  EXPECT_GT(*known.raised_s, 3600);
  EXPECT_LT(*known.raised_s, 3600 + 20 * 60);
}

}  // namespace
}  // namespace vramtrack
