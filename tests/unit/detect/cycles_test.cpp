// The memory left after each cycle: runs one after another, models that are swapped.
#include "detect/cycles.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "../at.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;

std::vector<Trough> troughs(const std::vector<double>& gib, double every_s = 600) {
  std::vector<Trough> out;
  for (double level : gib) out.push_back({at(every_s * static_cast<double>(out.size())), level * kGiB, 0});
  return out;
}

TEST(Cycles, AreSplitAtLargeFalls) {
  Cycles cycles;
  const double least = 0.5 * kGiB;
  double t = 0;
  for (const double level : {6.0, 6.0, 14.0, 32.0, 31.0, 10.0, 9.9, 10.2, 18.0, 36.0, 14.0, 26.0})
    cycles.observe(at(60 * t++), level * kGiB, least);
  ASSERT_EQ(cycles.troughs().size(), 3U);
  EXPECT_DOUBLE_EQ(cycles.troughs()[0].bytes, 6 * kGiB);
  EXPECT_DOUBLE_EQ(cycles.troughs()[1].bytes, 9.9 * kGiB);
  EXPECT_DOUBLE_EQ(cycles.troughs()[1].peak_bytes, 32 * kGiB);
  EXPECT_EQ(cycles.troughs()[1].time, at(360));
  EXPECT_DOUBLE_EQ(cycles.troughs()[2].bytes, 14 * kGiB);
}

TEST(Cycles, NoiseAndASteadyRiseHaveNone) {
  Cycles cycles;
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(cycles.observe(at(i), (10 + 0.01 * i + 0.5 * std::sin(i)) * kGiB, 0.5 * kGiB) && i > 200, false);
  EXPECT_LE(cycles.troughs().size(), 1U);
}

TEST(CycleTrend, FiveInARowAreChanceOnceIn120) {
  const auto trend = cycle_trend_of(troughs({6, 10, 14, 18, 22}), 64 * kMiB);
  ASSERT_TRUE(trend);
  EXPECT_EQ(trend->cycles, 5U);
  EXPECT_NEAR(trend->chance, 1.0 / 120, 1e-12);
  EXPECT_DOUBLE_EQ(trend->step_bytes, 4 * kGiB);
  EXPECT_DOUBLE_EQ(trend->cycle_s, 600);
  EXPECT_NEAR(trend->probability, 1 / (1 + 1.0 / 120 + 0.16), 1e-9);
}

TEST(CycleTrend, ItMayHaveBegunAtAnyOfTheCycles) {
  const auto trend = cycle_trend_of(troughs({9, 7, 8, 6, 10, 14, 18, 22}), 64 * kMiB);
  ASSERT_TRUE(trend);
  EXPECT_EQ(trend->cycles, 5U);
  EXPECT_NEAR(trend->chance, 4.0 / 120, 1e-12);
}

TEST(CycleTrend, FourStepsThatDifferALotOrOneThatFallsAreNone) {
  EXPECT_FALSE(cycle_trend_of(troughs({6, 10, 14, 18}), 64 * kMiB));
  EXPECT_FALSE(cycle_trend_of(troughs({6, 6.2, 14, 14.3, 22}), 64 * kMiB));
  EXPECT_FALSE(cycle_trend_of(troughs({6, 10, 9, 18, 22}), 64 * kMiB));
  EXPECT_FALSE(cycle_trend_of(troughs({6, 10, 14, 18, 22}, 200), 64 * kMiB)) << "steps of one work";
}

TEST(CycleTrend, OfCyclesThatDifferTheLowsCountToWhichNoneFallsBack) {
  const auto trend = cycle_trend_of(troughs({6, 20, 7, 15, 8, 25, 9, 18, 10, 22, 11, 19, 12, 21}), 64 * kMiB);
  ASSERT_TRUE(trend);
  EXPECT_EQ(trend->cycles, 14U);
  EXPECT_EQ(trend->lows, 8U);
  EXPECT_DOUBLE_EQ(trend->level_bytes, 12 * kGiB) << "the latest one is a low whatever it is";
  EXPECT_DOUBLE_EQ(trend->step_bytes, 0.5 * kGiB);
  EXPECT_LT(trend->chance, 0.01);
  EXPECT_FALSE(cycle_trend_of(troughs({6, 20, 7, 15, 8, 25, 9, 18, 10, 22, 11, 19, 12, 21}), 64 * kMiB, true));
}

TEST(CycleTrend, ValuesInAnyOrderHardlyEverRise) {
  std::mt19937 random(20261127);
  std::uniform_real_distribution<double> any(6, 30);
  int trends = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<double> gib(static_cast<std::size_t>(6 + i % 40));
    for (double& level : gib) level = any(random);
    const auto trend = cycle_trend_of(troughs(gib), 64 * kMiB);
    trends += trend && trend->probability >= 0.75 ? 1 : 0;
  }
  EXPECT_LT(trends, kDraws / 50);
}

TEST(CycleTrend, ALevelThatRoseOnceIsNone) {
  EXPECT_FALSE(cycle_trend_of(troughs({6, 6.9, 6.4, 6.2, 6.8, 6.5, 16, 16.9, 16.3, 16.8, 16.6, 17, 16.7}), 64 * kMiB));
  const auto stopped =
      cycle_trend_of(troughs({6, 8, 10, 12, 14, 16, 16.4, 16.1, 16.3, 16.2, 16.5, 16.6, 16.7}), 64 * kMiB);
  EXPECT_FALSE(stopped) << "nothing is left behind any more";
}

/// Each run holds 26 GiB on top of the previous runs' leftovers, and leaves 3.9 GiB behind.
struct Runs {
  CycleJudge judge{DetectionConfig{}, kSecondsAndBytes};
  double t = 0;
  void run(double left_gib, double held_gib = 26) {
    for (int i = 0; i < 2; ++i) sample(left_gib);
    for (int i = 0; i < 8; ++i) sample(left_gib + held_gib);
  }
  void sample(double gib) {
    judge.observe(at(t), gib * kGiB);
    t += 60;
  }
};

TEST(CycleJudge, RunsThatLeaveMoreEachTimeAreALeakUntilTheNextDoesNotFit) {
  Runs runs;
  runs.judge.set_limit(48 * kGiB);
  for (int i = 0; i < 4; ++i) runs.run(6 + 3.9 * i);
  EXPECT_FALSE(runs.judge.suspecting());
  runs.run(6 + 3.9 * 4, 25);
  ASSERT_TRUE(runs.judge.alerting());
  const Finding f = runs.judge.finding();
  EXPECT_EQ(f.pattern, Pattern::cyclic);
  EXPECT_NEAR(f.growth_bytes_per_s.mid, 3.9 * kGiB / 600, 0.01 * kGiB / 600);
  ASSERT_TRUE(f.oom_in_s);
  EXPECT_LE(f.oom_in_s->mid, 600);
  EXPECT_EQ(f.onset, at(60));
  EXPECT_THAT(f.because, HasSubstr("each of the last 5 cycles began higher than the one before"));
  EXPECT_THAT(f.because, HasSubstr("the next one will not fit; odds of this by chance: 1 in 120"));
  runs.run(6);
  EXPECT_FALSE(runs.judge.suspecting()) << "given back";
  EXPECT_EQ(runs.judge.last_end_reason(), "the program released what earlier cycles had left");
}

TEST(CycleJudge, WithMuchLeftItIsSuspected) {
  Runs runs;
  runs.judge.set_limit(192 * kGiB);
  for (int i = 0; i < 6; ++i) runs.run(6 + 1.0 * i);
  EXPECT_TRUE(runs.judge.suspecting());
  EXPECT_FALSE(runs.judge.alerting());
  EXPECT_EQ(runs.judge.finding().stage, Stage::suspected);
  EXPECT_FALSE(runs.judge.finding().oom_in_s);
}

}  // namespace
}  // namespace vramtrack
