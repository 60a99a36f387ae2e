// Busy series: a leak beneath bursts that are much larger. Tests the creep between jumps, and the change that all
// quantiles of a block have in common.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "detect/creep.hpp"
#include "detect/detector.hpp"
#include "detect/distributions.hpp"

namespace vramtrack {
namespace {

constexpr double kCapacity = 48 * kGiB;
constexpr double kPeriod_s = 10;

/// A server: requests take 256 MiB to 4 GiB each, hold it for a while, and release it at once. In whole MiB.
std::vector<double> served(std::uint32_t seed, double hours) {
  std::mt19937 random(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  std::vector<double> until_s(4, 0);
  std::vector<double> held(4, 0);
  std::vector<double> all;
  for (double t = 0; t < hours * 3600; t += kPeriod_s) {
    double used = 12 * kGiB;
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (t >= until_s[i]) {
        held[i] = uniform(0, 1) < 0.5 ? 0 : std::floor(uniform(256, 4096)) * kMiB;
        until_s[i] = t + uniform(30, 400);
      }
      used += held[i];
    }
    all.push_back(used);
  }
  return all;
}

struct Seen {
  std::optional<double> suspected_s;
  std::optional<double> confirmed_s;
  std::string because;
  double rate = 0;
};

Seen judged(const std::vector<double>& used_bytes) {
  const auto judge = find_detector("judge")->make(DetectionConfig{}, kSecondsAndBytes);
  judge->set_limit(kCapacity);
  Seen seen;
  for (std::size_t i = 0; i < used_bytes.size(); ++i) {
    const double t = kPeriod_s * static_cast<double>(i);
    judge->observe(Timestamp{from_seconds(1.7e9 + t)}, used_bytes[i]);
    if (judge->suspecting() && !seen.suspected_s) seen.suspected_s = t;
    if (!judge->alerting() || seen.confirmed_s) continue;
    seen.confirmed_s = t;
    const Finding f = judge->finding();
    EXPECT_TRUE(f.leak);
    EXPECT_EQ(f.stage, Stage::confirmed);
    seen.because = f.because;
    seen.rate = f.growth_bytes_per_s.mid;
  }
  return seen;
}

std::vector<double> with_leak(std::vector<double> used_bytes, double from_s, double bytes_per_s) {
  for (std::size_t i = 0; i < used_bytes.size(); ++i) {
    const double t = kPeriod_s * static_cast<double>(i);
    if (t > from_s) used_bytes[i] += std::floor(bytes_per_s * (t - from_s) / kMiB) * kMiB;
  }
  return used_bytes;
}

TEST(BusySeries, AServerIsNoLeak) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const Seen seen = judged(served(seed, 12));
    EXPECT_FALSE(seen.suspected_s) << seed << " " << seen.because;
  }
}

TEST(BusySeries, ALeakThatCreepsBetweenTheBurstsIsConfirmedSoon) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    // 1 GiB per hour beneath bursts of some 4 GiB: half of it is visible between the jumps, and 20 hours remain.
    const Seen seen = judged(with_leak(served(seed, 8), 2 * 3600, kGiB / 3600));
    ASSERT_TRUE(seen.confirmed_s) << seed;
    EXPECT_LE(*seen.confirmed_s, 2 * 3600 + 2 * 3600) << seed;
    EXPECT_NE(seen.because.find("grows beneath "), std::string::npos) << seen.because;
    EXPECT_NEAR(seen.rate, kGiB / 3600, 0.35 * kGiB / 3600) << seed;
  }
}

TEST(BusySeries, AnAlertOnTheCreepEndsWithItsProgram) {
  std::vector<double> used = with_leak(served(3, 8), 2 * 3600, kGiB / 3600);
  const auto judge = find_detector("judge")->make(DetectionConfig{}, kSecondsAndBytes);
  judge->set_limit(kCapacity);
  double t = 1.7e9;
  for (const double bytes : used) judge->observe(Timestamp{from_seconds(t += kPeriod_s)}, bytes);
  ASSERT_TRUE(judge->alerting());
  for (int i = 0; i < 12; ++i) judge->observe(Timestamp{from_seconds(t += kPeriod_s)}, 300 * kMiB);
  EXPECT_FALSE(judge->alerting());
  EXPECT_EQ(judge->last_end(), AlertEnd::released);
  EXPECT_EQ(judge->last_end_reason(), "the memory was released");
}

// A process's limit falls when another takes memory: below what it held before, but not below what it holds now.
TEST(BusySeries, ALowerLimitMakesNoEnd) {
  std::vector<double> used = with_leak(served(4, 9), 3 * 3600, 5 * kMiB / 60);
  const auto judge = find_detector("judge")->make(DetectionConfig{}, kSecondsAndBytes);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const double t = kPeriod_s * static_cast<double>(i);
    const bool early = t < 3600;
    judge->set_limit((early ? 80 : 40) * kGiB);
    judge->observe(Timestamp{from_seconds(1.7e9 + t)}, used[i] + (early ? 34 * kGiB : 0));
    if (!judge->alerting()) continue;
    const Finding f = judge->finding();
    ASSERT_TRUE(f.oom_in_s) << f.because;
    EXPECT_GT(f.oom_in_s->mid, 12 * 3600) << f.because;  // at 5 MiB/min some 12 GiB last for 41 h
    return;
  }
}

// Half of the requests' memory comes in segments that are released one by one: that is not a creep, because the falls
// are as small as the rises.
TEST(BusySeries, SmallFallsBalanceSmallRises) {
  std::vector<double> used = served(5, 12);
  double small = 0;
  for (std::size_t i = 0; i < used.size(); ++i) {
    small += (i / 40) % 2 == 0 ? 2 * kMiB : -2 * kMiB;
    used[i] += small;
  }
  EXPECT_FALSE(judged(used).suspected_s);
}

TEST(CreepTest, SumsWhatIsSmallAndCountsTheRest) {
  Creep creep;
  double used = 10 * kGiB;
  creep.observe(used);
  for (int i = 0; i < 100; ++i) {
    creep.observe(used += 4 * kMiB);
    creep.observe(used += i % 2 == 0 ? 2 * kGiB : -2 * kGiB);
    for (int still = 0; still < 8; ++still) creep.observe(used);
  }
  EXPECT_EQ(creep.bytes(), 10 * kGiB + 100 * 4 * kMiB);
  EXPECT_EQ(creep.jumps(), 100U);
  EXPECT_NEAR(creep.share_seen(), 0.9, 0.001);
  EXPECT_TRUE(creep.separable(20 * kGiB));
  EXPECT_FALSE(creep.separable(48 * kGiB)) << "swings of 2 GiB are no load where 48 are free";
  creep.clear();
  EXPECT_EQ(creep.jumps(), 0U);
  EXPECT_FALSE(creep.separable(20 * kGiB));
}

TEST(CreepTest, WhereSizesAreOneContinuumNothingIsSeparable) {
  Creep creep;
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    creep.observe(20 * kGiB +
                  (i % 4 != 0 ? 0 : 1) * std::floor(static_cast<double>(random()) / 4294967296.0 * 100) * kMiB);
    EXPECT_FALSE(creep.separable(kGiB));
  }
}

// A program with memory that rises in small steps and falls at once has jumps in only one direction.
TEST(CreepTest, ACycleIsNoCreep) {
  Creep creep;
  for (int i = 0; i < 20000; ++i) {
    creep.observe(4 * kGiB + (i % 10 < 5 ? 0 : 1) * kMiB + (i % 1000) * 8 * kMiB);
    EXPECT_FALSE(creep.separable(20 * kGiB));
  }
}

TEST(DistributionsTest, TellsByHowMuchEveryQuantileHasRisen) {
  Distributions blocks;
  std::optional<double> last;
  int told = 0;
  for (int i = 0; i < 20 * 60; ++i) {
    // Half of each block at 4 GiB, half at 8; from the tenth block on, all of it is 1 GiB higher.
    const double used = (i % 2 == 0 ? 4 : 8) * kGiB + (i >= 10 * 60 ? kGiB : 0);
    const auto shift = blocks.observe(Timestamp{from_seconds(10.0 * i)}, used);
    if (!shift) continue;
    last = shift;
    ++told;
    EXPECT_EQ(*shift - blocks.reference_bytes(), i <= 10 * 60 ? 0 : kGiB) << i;
  }
  EXPECT_EQ(told, 14) << "19 blocks were closed, 5 are the reference";
  EXPECT_EQ(blocks.reference_bytes(), 4 * kGiB);
}

TEST(DistributionsTest, AChangeOfLoadLeavesAQuantileWhereItWas) {
  Distributions blocks;
  for (int i = 0; i < 40 * 60; ++i) {
    // At first, one sample in two is at the high level; later, five in six.
    const bool high = i < 10 * 60 ? i % 2 == 0 : i % 6 != 0;
    const auto shift = blocks.observe(Timestamp{from_seconds(10.0 * i)}, (high ? 8 : 4) * kGiB);
    EXPECT_EQ(shift.value_or(4 * kGiB), 4 * kGiB);
  }
}

TEST(DistributionsTest, ABlockOfFewSamplesSaysNothing) {
  Distributions blocks;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(blocks.observe(Timestamp{from_seconds(120.0 * i)}, 1 * kGiB));
}

// The quantiles of a block do not depend on how often it was sampled, except for the dropped samples.
RC_GTEST_PROP(DistributionsTest, ManySamplesSayWhatFewSay, ()) {
  const auto shift_of = [](double period_s, double rise) {
    Distributions blocks;
    std::optional<double> last;
    for (double t = 0; t < 10 * 600 + 1; t += period_s) {
      const double wave = std::fmod(t, 300) / 300;
      if (const auto shift =
              blocks.observe(Timestamp{from_seconds(t)}, 4 * kGiB + wave * kGiB + (t > 6 * 600 ? rise : 0)))
        last = *shift - blocks.reference_bytes();
    }
    return last.value_or(-1);
  };
  const double rise = *rc::gen::inRange(1, 4000) * kMiB;
  RC_ASSERT(std::abs(shift_of(0.5, rise) - shift_of(5, rise)) <= 0.05 * kGiB);
}

}  // namespace
}  // namespace vramtrack
