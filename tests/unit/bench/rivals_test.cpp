#include "rivals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "core/config.hpp"
#include "detect/detector.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;
constexpr double kHour = 3600;

using Shape = std::function<double(double t_s)>;

std::unique_ptr<Rival> make(std::string_view name, double capacity_bytes) {
  for (const RivalInfo& info : rivals())
    if (info.name == name) return info.make(capacity_bytes);
  ADD_FAILURE() << "no rival " << name;
  return nullptr;
}

/// A rival's reports about a trace.
struct Heard {
  int alarmed = 0;                 ///< number of samples
  double first_s = -1;             ///< time of the first alarm
  bool at_end = false;             ///< alarming after the last sample
  std::optional<double> oom_in_s;  ///< after the last sample
};

Heard hear(std::string_view name, double capacity_bytes, double until_s, double period_s, const Shape& shape) {
  const std::unique_ptr<Rival> rival = make(name, capacity_bytes);
  Heard heard;
  for (int i = 0; i * period_s <= until_s; ++i) {
    rival->observe(i * period_s, shape(i * period_s));
    if (!rival->alarming()) continue;
    if (heard.alarmed++ == 0) heard.first_s = i * period_s;
  }
  heard.at_end = rival->alarming();
  heard.oom_in_s = rival->oom_in_s();
  return heard;
}

Shape ramp(double start_bytes, double bytes_per_s) {
  return [=](double t_s) { return start_bytes + bytes_per_s * t_s; };
}

/// A load of `load_bytes` at `at_s`, and nothing more.
Shape load(double start_bytes, double load_bytes, double at_s) {
  return [=](double t_s) { return start_bytes + (t_s >= at_s ? load_bytes : 0); };
}

TEST(Rivals, AreAllNamedOnceAndSourced) {
  std::set<std::string> names;
  for (const RivalInfo& info : rivals()) {
    EXPECT_TRUE(names.insert(std::string{info.name}).second) << info.name;
    EXPECT_GT(info.rule.size(), 10U) << info.name;
    EXPECT_GT(info.source.size(), 10U) << info.name;
    EXPECT_NE(info.make(kGiB), nullptr) << info.name;
  }
  EXPECT_EQ(names.size(), 29U);
}

// All of them agree on this, and no rule may report otherwise.
TEST(Rivals, NoneAlarmsOnAConstantSeries) {
  for (const RivalInfo& info : rivals()) {
    for (const double period_s : {1.0, 60.0}) {
      const Heard heard = hear(info.name, 24 * kGiB, 3 * kHour, period_s, ramp(8 * kGiB, 0));
      EXPECT_EQ(heard.alarmed, 0) << info.name;
      EXPECT_FALSE(heard.oom_in_s) << info.name;
    }
  }
}

/// Whether the rule must hold for longer than a fast leak permits, or at a level that the leak passes too soon.
bool is_slow(std::string_view rule) {
  return rule.starts_with("node_mixin") || rule == "gpu_leak_deriv" || rule == "gpu_95_for2m" ||
         rule == "hami_90_for10m" || rule == "vllm_98_for10m";
}

// 8 of 80 GiB, and 20 MiB/s more: full after an hour. Every rule except the bare spike and the slow ones detects this
// one.
TEST(Rivals, AllHearALoudLeak) {
  for (const RivalInfo& info : rivals()) {
    if (info.name == "gpulse_spike" || info.name == "gpulse_spike_followed") continue;
    if (is_slow(info.name)) continue;
    EXPECT_TRUE(hear(info.name, 80 * kGiB, kHour, 1, ramp(8 * kGiB, 20 * kMiB)).at_end) << info.name;
  }
}

// For the rules written here. A wrapped detector latches its alert, possibly at the value that was replaced.
TEST(Rivals, AValueThatIsReplacedCountsAsNeverSeen) {
  for (const RivalInfo& info : rivals()) {
    if (info.name.substr(0, 6) == "gpulse" && info.name != "gpulse_spike") continue;
    const std::unique_ptr<Rival> clean = info.make(24 * kGiB);
    const std::unique_ptr<Rival> replaced = info.make(24 * kGiB);
    int alarms = 0;
    for (int i = 0; i <= 720; ++i) {
      const double t_s = 10.0 * i;
      const double used_bytes = (4 * kGiB + 3 * kMiB * t_s * (i < 400 ? 1 : 0.5)) * (i < 600 ? 1 : 1.6);
      clean->observe(t_s, used_bytes);
      replaced->observe(t_s, i % 3 == 0 ? 23.9 * kGiB : 0.1 * kGiB);
      replaced->observe(t_s, used_bytes);
      ASSERT_EQ(clean->alarming(), replaced->alarming()) << info.name << " at " << t_s;
      ASSERT_EQ(clean->oom_in_s().has_value(), replaced->oom_in_s().has_value()) << info.name << " at " << t_s;
      if (clean->oom_in_s()) {
        ASSERT_NEAR(*clean->oom_in_s(), *replaced->oom_in_s(), 1) << info.name << " at " << t_s;
      }
      alarms += clean->alarming() ? 1 : 0;
    }
    if (!is_slow(info.name)) {
      EXPECT_GT(alarms, 0) << info.name;
    }
  }
}

// 1.5 MiB/s from 8 of 24 GiB: alarmed at 5 min; at 10 min 16 GiB - 900 MiB are left, at 1.5 MiB/s: 10322.7 s.
TEST(GpulseLinear, TheDocumentsThresholds) {
  const Heard heard = hear("gpulse_linear", 24 * kGiB, 600, 1, ramp(8 * kGiB, 1.5 * kMiB));
  EXPECT_EQ(heard.first_s, 300);
  ASSERT_TRUE(heard.oom_in_s);
  EXPECT_NEAR(*heard.oom_in_s, (16 * 1024 - 900) / 1.5, 1);
  // Twenty samples: with one every 30 s (gpulse's default), the twentieth comes at 570 s.
  EXPECT_EQ(hear("gpulse_linear", 24 * kGiB, 3600, 30, ramp(8 * kGiB, 1.5 * kMiB)).first_s, 570);
}

TEST(GpulseLinear, MissesItsDocumentsOwnExamples) {
  const double fifty_mib_a_minute = 50 * kMiB / 60;
  EXPECT_EQ(hear("gpulse_linear", 24 * kGiB, 4 * kHour, 10, ramp(8 * kGiB, fifty_mib_a_minute)).alarmed, 0);
  EXPECT_TRUE(hear("gpulse_linear_low", 24 * kGiB, 4 * kHour, 10, ramp(8 * kGiB, fifty_mib_a_minute)).at_end);
  // And the low floor: 0.005 MiB/s, 18 MiB/h.
  EXPECT_EQ(hear("gpulse_linear_low", 24 * kGiB, 4 * kHour, 10, ramp(8 * kGiB, 0.005 * kMiB)).alarmed, 0);
}

TEST(GpulseLinear, LiesOnALoadInShards) {
  const Shape shards = [](double t_s) { return 2 * kGiB + std::floor(std::fmin(t_s, 900) / 60) * 1.2 * kGiB; };
  EXPECT_GT(hear("gpulse_linear", 24 * kGiB, 900, 1, shards).alarmed, 0);
  EXPECT_GT(hear("gpulse_linear_bare", 24 * kGiB, 900, 1, shards).alarmed, 0);
}

// R2 of a line with a one-off jump in the middle of n equal samples: 0.75 for large n. Below 0.8: never.
TEST(GpulseLinear, OneJumpIsNoLine) {
  EXPECT_EQ(hear("gpulse_linear_bare", 24 * kGiB, 1200, 1, load(2 * kGiB, 8 * kGiB, 600)).alarmed, 0);
}

// A ramp that stops: the confidence weighs the latest third, the bare rule requires only R2 >= 0.8 (held to 0.72).
TEST(GpulseLinear, TheBareRuleHoldsLongerThanTheConfidenceDoes) {
  const Shape stops = [](double t_s) { return 2 * kGiB + 2 * kMiB * std::fmin(t_s, 1200); };
  const int sure = hear("gpulse_linear", 24 * kGiB, 1.5 * kHour, 1, stops).alarmed;
  const int bare = hear("gpulse_linear_bare", 24 * kGiB, 1.5 * kHour, 1, stops).alarmed;
  EXPECT_GT(sure, 0);
  EXPECT_GT(bare, sure);
  EXPECT_GE(hear("gpulse_linear_bare_low", 24 * kGiB, 1.5 * kHour, 1, stops).alarmed, bare);
}

// Exactly 20 % does not exceed 20 %.
TEST(GpulseSpike, MoreThanAFifthWithinThirtySeconds) {
  EXPECT_EQ(hear("gpulse_spike", 24 * kGiB, 300, 1, load(10 * kGiB, 2 * kGiB, 100)).alarmed, 0);
  const Heard heard = hear("gpulse_spike", 24 * kGiB, 300, 1, load(10 * kGiB, 2 * kGiB + 1, 100));
  EXPECT_EQ(heard.first_s, 100);
  EXPECT_EQ(heard.alarmed, 31);  // until the sample of 99 s is 31.5 s back
  EXPECT_FALSE(heard.at_end);
  // 6 MiB/s: 180 MiB in the window, of 10 GiB under 2 %.
  EXPECT_EQ(hear("gpulse_spike", 24 * kGiB, kHour / 2, 1, ramp(10 * kGiB, 6 * kMiB)).alarmed, 0);
}

TEST(GpulseSpike, OneSamplingPeriodWhereThatIsLonger) {
  EXPECT_EQ(hear("gpulse_spike", 24 * kGiB, 1200, 60, load(10 * kGiB, 3 * kGiB, 600)).alarmed, 1);
  // A gap is not a period.
  const std::unique_ptr<Rival> rival = make("gpulse_spike", 24 * kGiB);
  for (int i = 0; i < 30; ++i) rival->observe(60.0 * i, 10 * kGiB);
  rival->observe(60.0 * 50, 13 * kGiB);
  EXPECT_FALSE(rival->alarming());
}

TEST(GpulseSpike, LiesOnEveryModelLoadUnlessItIsFollowed) {
  EXPECT_GT(hear("gpulse_spike", 24 * kGiB, kHour, 1, load(1 * kGiB, 8 * kGiB, 600)).alarmed, 0);
  EXPECT_GT(hear("gpulse_composite", 24 * kGiB, kHour, 1, load(1 * kGiB, 8 * kGiB, 600)).alarmed, 0);
  EXPECT_EQ(hear("gpulse_spike_followed", 24 * kGiB, kHour, 1, load(1 * kGiB, 8 * kGiB, 600)).alarmed, 0);
  EXPECT_EQ(hear("gpulse_composite_followed", 24 * kGiB, kHour, 1, load(1 * kGiB, 8 * kGiB, 600)).alarmed, 0);
  // Growth of 2 MiB/s after it.
  const Shape goes_on = [](double t_s) { return t_s < 600 ? kGiB : 9 * kGiB + 2 * kMiB * (t_s - 600); };
  EXPECT_GT(hear("gpulse_spike_followed", 24 * kGiB, kHour, 1, goes_on).alarmed, 0);
}

TEST(GpulseComposite, IsTheOneOrTheOther) {
  const Heard heard = hear("gpulse_composite", 24 * kGiB, 600, 1, ramp(8 * kGiB, 1.5 * kMiB));
  EXPECT_EQ(heard.first_s, 300);
  EXPECT_TRUE(heard.oom_in_s);
}

// Five samples 0 1 0 1 2 (GiB) at 0..4 s: slope 0.4, r = 4/sqrt(10 x 2.8) = 0.756, t = 2.00, p = 0.14: not yet.
// A sixth, 3: slope 0.571, r = 10/sqrt(17.5 x 6.83) = 0.914, t = 4.52, p = 0.011: alarm.
TEST(GpumemprofTrend, ByHand) {
  const std::unique_ptr<Rival> rival = make("gpumemprof_trend", 24 * kGiB);
  const double gib[] = {0, 1, 0, 1, 2};
  for (int i = 0; i < 5; ++i) {
    rival->observe(i, gib[i] * kGiB);
    EXPECT_FALSE(rival->alarming()) << i;
  }
  rival->observe(5, 3 * kGiB);
  EXPECT_TRUE(rival->alarming());
  EXPECT_FALSE(rival->oom_in_s());
}

TEST(GpumemprofTrend, AnySizeWillDo) {
  EXPECT_EQ(hear("gpumemprof_trend", 80 * kGiB, 600, 1, ramp(8 * kGiB, 1)).first_s, 4);  // one byte per second
  EXPECT_EQ(hear("gpumemprof_trend", 80 * kGiB, 600, 1, ramp(8 * kGiB, -kMiB)).alarmed, 0);
}

// A line through all since the start: a load stays a trend for as long as r > 0.5. With the load at the share q of the
// samples r^2 = 3 q (1 - q): until q < 0.092, ten times the time before the load.
TEST(GpumemprofTrend, LiesOnALoadLongAfterIt) {
  EXPECT_TRUE(hear("gpumemprof_trend", 24 * kGiB, 6000, 10, load(1 * kGiB, 8 * kGiB, 600)).at_end);
  EXPECT_FALSE(hear("gpumemprof_trend", 24 * kGiB, 7200, 10, load(1 * kGiB, 8 * kGiB, 600)).at_end);
}

TEST(GpumemprofLeak, OneHundredMiBAndATenthOfRises) {
  // 3 MiB each: 35 rises are the first above 100 MiB.
  EXPECT_EQ(hear("gpumemprof_leak", 24 * kGiB, 100, 1, ramp(kGiB, 3 * kMiB)).first_s, 34);
  // 200 MiB each 11th sample: 1 of 11 changes is below a tenth.
  const Shape rare = [](double t_s) { return kGiB + std::floor(t_s / 11) * 200 * kMiB; };
  EXPECT_FALSE(hear("gpumemprof_leak", 24 * kGiB, 220, 1, rare).at_end);
  const Shape often = [](double t_s) { return kGiB + std::floor(t_s / 9) * 200 * kMiB; };
  EXPECT_TRUE(hear("gpumemprof_leak", 24 * kGiB, 220, 1, often).at_end);
}

TEST(GpumemprofLeak, LiesOnAJitteringPlateauAfterALoad) {
  const Shape jitter = [](double t_s) { return (t_s < 60 ? 1 : 8) * kGiB + std::fmod(t_s, 2) * kMiB; };
  EXPECT_TRUE(hear("gpumemprof_leak", 24 * kGiB, 4 * kHour, 1, jitter).at_end);
}

// From 8 GiB at 1 MiB/s: in 4 h 14400 MiB more. That passes 24 GiB once used > 24 GiB - 14400 MiB = 10176 MiB: after
// 1984 s; the evaluation after that is at 2040 s.
TEST(PredictLinear, TheLineFourHoursOn) {
  const Heard heard = hear("predict_linear", 24 * kGiB, 2 * kHour, 15, ramp(8 * kGiB, kMiB));
  EXPECT_EQ(heard.first_s, 2040);
  ASSERT_TRUE(heard.oom_in_s);
  EXPECT_NEAR(*heard.oom_in_s, 16 * 1024 - 2 * kHour, 1e-3);
  EXPECT_EQ(hear("predict_linear_for10m", 24 * kGiB, 2 * kHour, 15, ramp(8 * kGiB, kMiB)).first_s, 2640);
  // 0.2 MiB/s, the documents' 12 MiB/min, fills in 22.8 h: not before the last four.
  EXPECT_EQ(hear("predict_linear", 24 * kGiB, 18 * kHour, 15, ramp(8 * kGiB, 0.2 * kMiB)).alarmed, 0);
}

// Two samples make a line: 0.5 GiB in a minute, 120 GiB in four hours.
TEST(PredictLinear, AsksForTwoSamples) {
  const std::unique_ptr<Rival> rival = make("predict_linear", 24 * kGiB);
  rival->observe(0, kGiB);
  EXPECT_FALSE(rival->alarming());
  rival->observe(60, 1.5 * kGiB);
  EXPECT_TRUE(rival->alarming());
  ASSERT_TRUE(rival->oom_in_s());
  EXPECT_NEAR(*rival->oom_in_s(), 22.5 / 0.5 * 60, 1e-6);
  // After a gap longer than the range, only one sample is in it.
  rival->observe(60 + 3600, 2 * kGiB);
  EXPECT_FALSE(rival->alarming());
}

// A model loads 12 GiB half an hour after the start and nothing more happens. If the load is at fraction q of the
// range, the slope is 6 q (1 - q) x 12 GiB/range, so the rule alarms within a minute and for most of the hour after.
TEST(PredictLinear, LiesOnAOneTimeLoad) {
  const Heard heard = hear("predict_linear", 24 * kGiB, 3 * kHour, 15, load(2 * kGiB, 12 * kGiB, 1800));
  EXPECT_LE(heard.first_s, 1860);
  EXPECT_GT(heard.alarmed * 15, 2700);
  EXPECT_LE(heard.alarmed * 15, 3660);
  EXPECT_FALSE(heard.at_end);
  // `for: 10m` does not help.
  EXPECT_GT(hear("predict_linear_for10m", 24 * kGiB, 3 * kHour, 15, load(2 * kGiB, 12 * kGiB, 1800)).alarmed, 0);
}

TEST(PredictLinear, ForTenMinutesBeginsAnewWhenTheConditionFails) {
  const std::unique_ptr<Rival> rival = make("predict_linear_for10m", 24 * kGiB);
  for (int minute = 0; minute <= 9; ++minute) rival->observe(60 * minute, kGiB * (1 + minute));
  EXPECT_FALSE(rival->alarming());  // true since minute 1
  rival->observe(600, -400 * kGiB);
  EXPECT_FALSE(rival->alarming());
  rival->observe(660, 12 * kGiB);
  EXPECT_FALSE(rival->alarming());
}

TEST(Deriv, OneMiBASecondForTenMinutes) {
  EXPECT_EQ(hear("deriv_for10m", 80 * kGiB, 2 * kHour, 15, ramp(8 * kGiB, 1.01 * kMiB)).first_s, 660);
  EXPECT_EQ(hear("deriv_for10m", 80 * kGiB, 2 * kHour, 15, ramp(8 * kGiB, 0.99 * kMiB)).alarmed, 0);
  EXPECT_EQ(hear("deriv_low_for10m", 80 * kGiB, 2 * kHour, 15, ramp(8 * kGiB, 11 * kMiB / kHour)).first_s, 660);
  EXPECT_EQ(hear("deriv_low_for10m", 80 * kGiB, 2 * kHour, 15, ramp(8 * kGiB, 9 * kMiB / kHour)).alarmed, 0);
  EXPECT_FALSE(hear("deriv_for10m", 80 * kGiB, 2 * kHour, 15, ramp(8 * kGiB, 2 * kMiB)).oom_in_s);
}

TEST(Deriv, LiesOnAOneTimeLoad) {
  EXPECT_GT(hear("deriv_for10m", 80 * kGiB, 3 * kHour, 15, load(2 * kGiB, 12 * kGiB, 1800)).alarmed, 0);
  // 100 MiB that stay: at most 1.5 x 100 MiB/h.
  EXPECT_GT(hear("deriv_low_for10m", 80 * kGiB, 3 * kHour, 15, load(2 * kGiB, 100 * kMiB, 1800)).alarmed, 0);
}

// 24 GiB, 4 used, 1 GiB/h. The window's least free is that of its end, 50 min ago: 50/60 GiB an hour. Warned when
// (20 - h) / (5/6) < 8, at h > 13.33 hours: 48000 s.
TEST(Netdata, WarnsWhenEightHoursAreLeft) {
  const Heard heard = hear("netdata", 24 * kGiB, 15 * kHour, 5, ramp(4 * kGiB, kGiB / kHour));
  EXPECT_NEAR(heard.first_s, 48000, 200);
  EXPECT_TRUE(heard.at_end);
  ASSERT_TRUE(heard.oom_in_s);
  EXPECT_NEAR(*heard.oom_in_s, 5 * kHour * 6 / 5, 0.01 * 6 * kHour);
  EXPECT_EQ(hear("netdata", 24 * kGiB, 12 * kHour, 5, ramp(4 * kGiB, kGiB / kHour)).alarmed, 0);
}

TEST(Netdata, HoldsUntilFortyEightHours) {
  // Four hours at 2.4 GiB/h from 4 GiB: 10.4 left at 2 GiB/h by its reckoning is 5.2 h. Then slower: at 0.6 GiB/h it
  // reckons 0.5, 20 h: held. Then nothing: released.
  const auto used = [](double t_s) {
    const double h = t_s / kHour;
    return kGiB * (4 + 2.4 * std::fmin(h, 4) + 0.6 * std::fmin(std::fmax(h - 4, 0), 3));
  };
  const std::unique_ptr<Rival> rival = make("netdata", 24 * kGiB);
  const std::unique_ptr<Rival> late = make("netdata", 24 * kGiB);
  for (double t_s = 0; t_s <= 9 * kHour; t_s += 10) {
    rival->observe(t_s, used(t_s));
    if (t_s >= 4 * kHour) late->observe(t_s, used(t_s));
    if (t_s == 4 * kHour || t_s == 6 * kHour) {
      EXPECT_TRUE(rival->alarming()) << t_s;
    }
    EXPECT_FALSE(late->alarming()) << t_s;  // 20 h alone do not raise it
  }
  EXPECT_FALSE(rival->alarming());
}

TEST(Netdata, NeedsAnHourOfHistoryAndLiesOnALoad) {
  EXPECT_EQ(hear("netdata", 24 * kGiB, 2980, 5, ramp(kGiB, 4 * kMiB)).alarmed, 0);
  const Heard heard = hear("netdata", 24 * kGiB, 4 * kHour, 5, load(2 * kGiB, 12 * kGiB, kHour + 10));
  EXPECT_NEAR(heard.first_s, kHour + 60, 1);
  EXPECT_NEAR(heard.alarmed * 5, 3000, 120);
  EXPECT_FALSE(heard.at_end);
}

// From 8 GiB at 1 GiB/h: 12.5 %/h, and more than 5 % of 16 GiB. 48 points are there at 47 min; the line an hour back
// starts at 8 GiB - 13 min: 1/7.78 = 12.8 %.
TEST(Coroot, TenPercentAnHour) {
  EXPECT_EQ(hear("coroot", 16 * kGiB, 1.2 * kHour, 10, ramp(8 * kGiB, kGiB / kHour)).first_s, 47 * 60);
  EXPECT_EQ(hear("coroot", 16 * kGiB, 1.2 * kHour, 10, ramp(8 * kGiB, 0.7 * kGiB / kHour)).alarmed, 0);  // 9 %
  EXPECT_EQ(hear("coroot", 80 * kGiB, 1.2 * kHour, 10, ramp(8 * kGiB, kGiB / kHour)).alarmed, 0);  // 1.25 % of capacity
}

TEST(Coroot, TheTailGuardKeepsItQuietAtAPlateau) {
  const Shape stops = [](double t_s) { return 4 * kGiB + 4 * kGiB * std::fmin(t_s / 1800, 1); };
  EXPECT_EQ(hear("coroot", 16 * kGiB, 2 * kHour, 10, stops).alarmed, 0);
  EXPECT_EQ(hear("coroot", 16 * kGiB, 3 * kHour, 10, load(2 * kGiB, 8 * kGiB, kHour)).at_end, false);
}

// 4 GiB/h for 43 of 60 minutes, then slower: the last quarter must keep 0.3 of the hour's slope, which is above 3
// GiB/h.
TEST(Coroot, TheTailNeedsThreeTenthsOfTheSlope) {
  const auto slows_to = [](double bytes_per_h) -> Shape {
    return [=](double t_s) {
      return 8 * kGiB + 4 * kGiB * std::fmin(t_s, 2580) / kHour + bytes_per_h * std::fmax(t_s - 2580, 0) / kHour;
    };
  };
  EXPECT_FALSE(hear("coroot", 16 * kGiB, kHour - 1, 10, slows_to(0.6 * kGiB)).at_end);
  EXPECT_TRUE(hear("coroot", 16 * kGiB, kHour - 1, 10, slows_to(1.6 * kGiB)).at_end);
}

// A restart to below half starts over: the longest stretch is judged.
TEST(Coroot, SplitsAtAHalving) {
  const Shape restarts = [](double t_s) { return t_s < 1500 ? 8 * kGiB : 2 * kGiB + kGiB * (t_s - 1500) / kHour; };
  EXPECT_TRUE(hear("coroot", 16 * kGiB, kHour - 1, 10, restarts).at_end);  // 35 of 60 min, 50 %/h
}

// One ramp of a slow sawtooth, and half a day's load, are leaks to it.
TEST(Coroot, LiesOnTheRampOfASawtooth) {
  const Shape sawtooth = [](double t_s) { return 4 * kGiB + 6 * kGiB * std::fmod(t_s, 2 * kHour) / (2 * kHour); };
  EXPECT_GT(hear("coroot", 16 * kGiB, 6 * kHour, 10, sawtooth).alarmed, 0);
}

// 100 steps of 20 MiB: the bands are steps 15-24, 45-54 and 90-99, their averages 75 x 20 MiB = 1500 MiB apart. With n
// steps 0.75 n x 20 MiB >= 1024 MiB: n about 68.
TEST(TraceMl, OneGiBFromBandToBand) {
  const Heard heard = hear("traceml", 24 * kGiB, 99, 1, ramp(2 * kGiB, 20 * kMiB));
  EXPECT_NEAR(heard.first_s, 67, 2);
  EXPECT_TRUE(heard.at_end);
  EXPECT_EQ(hear("traceml", 24 * kGiB, 99, 1, ramp(2 * kGiB, 13 * kMiB)).alarmed, 0);   // 975 MiB
  EXPECT_EQ(hear("traceml", 24 * kGiB, 48, 1, ramp(2 * kGiB, 200 * kMiB)).alarmed, 0);  // 49 steps
}

TEST(TraceMl, TheBandsMustRiseInTheirOrder) {
  const Shape falls = [](double t_s) { return (t_s < 30 ? 2 : t_s < 70 ? 8 : 5) * kGiB; };
  EXPECT_FALSE(hear("traceml", 24 * kGiB, 99, 1, falls).at_end);
  const Shape flat = [](double t_s) { return (t_s < 70 ? 2 : 8) * kGiB; };
  EXPECT_FALSE(hear("traceml", 24 * kGiB, 99, 1, flat).at_end);  // the middle is not above the first
}

TEST(TraceMl, MissesWhatIsSlowerThanAGiBInItsHistory) {
  // 0.1 MiB/s, 360 MiB an hour: 750 MiB over the 10000 samples.
  EXPECT_EQ(hear("traceml", 24 * kGiB, 24 * kHour, 1, ramp(2 * kGiB, 0.1 * kMiB)).alarmed, 0);
}

TEST(TraceMl, LiesOnAWarmUpThatHasSaturated) {
  const Shape saturates = [](double t_s) { return 2 * kGiB + 4 * kGiB * (1 - std::exp(-t_s / 300)); };
  EXPECT_TRUE(hear("traceml", 24 * kGiB, 1800, 1, saturates).at_end);  // 99.8 % of it has been added
}

TEST(Published, AlarmWhenTheirWordsSay) {
  // 100 GiB fill within 20 hours: 5 GiB an hour.
  const Shape fills = ramp(0, 5 * kGiB / kHour);
  const auto first_h = [&](std::string_view name) {
    return hear(name, 100 * kGiB, 20 * kHour, 15, fills).first_s / kHour;
  };
  constexpr double kMinutes = 3.0 / 60;
  EXPECT_NEAR(first_h("node_mixin_warning"), 12 + 1, kMinutes);   // 60 % are used, and an hour passes
  EXPECT_NEAR(first_h("node_mixin_critical"), 16 + 1, kMinutes);  // 80 %, and 4 h are left
  EXPECT_NEAR(first_h("kubernetes_mixin"), 17 + 5.0 / 60, kMinutes);
  EXPECT_NEAR(first_h("gpu_leak_1h"), 19 + 15.0 / 60, kMinutes);
  EXPECT_NEAR(first_h("gpu_oom_30m"), 19.5, kMinutes);
  EXPECT_NEAR(first_h("elastic_90"), 18 + 2.0 / 60, kMinutes);
  EXPECT_NEAR(first_h("gpu_85_for5m"), 17 + 5.0 / 60, kMinutes);
  EXPECT_NEAR(first_h("gpu_95_for2m"), 19 + 2.0 / 60, kMinutes);
  EXPECT_NEAR(first_h("hami_90_for10m"), 18 + 10.0 / 60, kMinutes);
  EXPECT_NEAR(first_h("vllm_98_for10m"), 19.6 + 10.0 / 60, kMinutes);
  EXPECT_LT(first_h("gpu_leak_deriv"), 0) << "100 MiB a second for two hours is more than any card has";
}

TEST(Published, ElasticRemembersThePeakOfFiveMinutes) {
  const Shape peak = [](double t_s) { return (t_s >= 600 && t_s < 615 ? 95.0 : 20.0) * kGiB; };
  EXPECT_GT(hear("elastic_90", 100 * kGiB, 1800, 15, peak).alarmed, 0);
  EXPECT_FALSE(hear("elastic_90", 100 * kGiB, 1800, 15, peak).at_end);
  EXPECT_EQ(hear("gpu_85_for5m", 100 * kGiB, 1800, 15, peak).alarmed, 0);
}

TEST(Static, NinetyPercent) {
  EXPECT_EQ(hear("static_90", 100 * kGiB, 100, 1, ramp(0, kGiB)).first_s, 91);
}

TEST(Static, LiesOnAHealthyPlateauAndHearsALeakAtItsEnd) {
  EXPECT_EQ(hear("static_90", 24 * kGiB, 99, 1, ramp(0.92 * 24 * kGiB, 0)).alarmed, 100);
  EXPECT_EQ(hear("static_90", 24 * kGiB, 20 * kHour, 60, ramp(4 * kGiB, 0.2 * kMiB)).alarmed, 0);
}

}  // namespace
}  // namespace vramtrack::accuracy
