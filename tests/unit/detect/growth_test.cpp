// Growth that is fast and clean, growth below an earlier level, and the reports about a growth while it continues.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "core/units.hpp"
#include "detect/detector.hpp"
#include "detect/facts.hpp"
#include "kinked_growth.hpp"

namespace vramtrack {
namespace {

using Shape = std::function<double(double)>;
using Look = std::function<void(double, const Detector&)>;

struct Raised {
  std::optional<double> suspected_s;
  std::optional<double> confirmed_s;
};

/// Feeds `used_bytes` to the judge until it reaches the limit; calls `look` after each sample. A suspicion before
/// `from_s` does not count. `works`: the program is known to work all the time, so that its growth is not a load.
Raised feed(const Shape& used_bytes, double until_s, double period_s, double limit_bytes, const Look& look = {},
            double from_s = 0, bool works = false) {
  const auto judge = find_detector("judge")->make(DetectionConfig{}, kSecondsAndBytes);
  Facts facts;
  if (works) judge->set_facts(&facts);
  judge->set_limit(limit_bytes);
  Raised raised;
  for (double t = 0; t <= until_s && used_bytes(t) <= limit_bytes; t += period_s) {
    facts.busy(Timestamp{from_seconds(1.7e9 + t)}, 0.8);
    judge->observe(Timestamp{from_seconds(1.7e9 + t)}, used_bytes(t));
    if (t >= from_s && judge->suspecting() && !raised.suspected_s) raised.suspected_s = t;
    if (judge->alerting() && !raised.confirmed_s) raised.confirmed_s = t;
    if (look) look(t, *judge);
  }
  return raised;
}

TEST(FastGrowth, IsToldFromTheFirstMinuteWithItsRateAndItsEndIfItGoesOn) {
  constexpr double kRate = 48 * kMiB;
  feed([](double t) { return 2 * kGiB + kRate * t; }, 300, 1, 80 * kGiB,
       [](double t, const Detector& judge) {
         if (t < 60) return;
         const Finding f = judge.finding();
         ASSERT_EQ(f.state, State::growing) << t << " s: " << f.because;
         EXPECT_NEAR(f.growth_bytes_per_s.mid, kRate, 0.02 * kRate);
         ASSERT_TRUE(f.oom_if_growth_continues_s);
         EXPECT_NEAR(*f.oom_if_growth_continues_s, (78 * kGiB - kRate * t) / kRate, 30);
         EXPECT_NE(f.because.find("if the growth continues, memory runs out in "), std::string::npos) << f.because;
         EXPECT_FALSE(f.oom_in_s);
       });
}

// Clean growth that ends after ten minutes to two hours is confirmed by half of its life, at any rate and period, if
// the program is known to work. Judged by the curve alone, the first half hour of a program may be a load; so may
// growth that would fill two thirds of the memory in that time although the program works.
RC_GTEST_PROP(FastGrowth, IsConfirmedByHalfOfItsLife, ()) {
  const double life_s = *rc::gen::inRange(600, 7200);
  const double period_s = *rc::gen::element(1.0, 2.0, 5.0, 10.0);
  const double base_gib = *rc::gen::inRange(1, 20);
  const double limit_gib = base_gib + *rc::gen::inRange(4, 100);
  const double rate = (limit_gib - base_gib) * kGiB / life_s;
  const auto grows = [&](double t) { return base_gib * kGiB + rate * t; };
  const auto raised_s = feed(grows, life_s, period_s, limit_gib * kGiB, {}, 0, true).confirmed_s;
  constexpr double kLongestLoad_s = 36 * 60;
  const bool may_convert = rate * kLongestLoad_s >= limit_gib * kGiB * 2 / 3;
  RC_ASSERT(raised_s.has_value() || (may_convert && life_s < 2900));
  // Two buckets of the deciding scale: a bucket is a thirtieth of the elapsed time, but at least 10 s.
  const double looks_s = std::max(life_s / 30, 20 + 2 * period_s);
  RC_ASSERT(may_convert || *raised_s <= 0.5 * life_s + looks_s);
  const auto by_curve_s = feed(grows, life_s, period_s, limit_gib * kGiB).confirmed_s;
  RC_ASSERT(life_s < 2900 || by_curve_s.has_value());
  // While it may be a load, a level is checked only every other time that a bucket closes.
  RC_ASSERT(!by_curve_s || *by_curve_s <= std::max(0.5 * life_s, kLongestLoad_s) + 4 * looks_s);
}

// A non-decreasing series, with increments of any size: it rises, stands still or jumps, and never falls.
RC_GTEST_PROP(MonotoneSeries, IsNeverCalledCycling, ()) {
  const auto rises = *rc::gen::container<std::vector<int>>(600, rc::gen::element(0, 0, 1, 8, 64, 900));
  const double period_s = *rc::gen::element(1.0, 5.0, 10.0, 60.0);
  const auto judge = find_detector("judge")->make(DetectionConfig{}, kSecondsAndBytes);
  judge->set_limit(400 * kGiB);
  double mib = 1000;
  for (std::size_t i = 0; i < rises.size(); ++i) {
    mib += rises[i];
    judge->observe(Timestamp{from_seconds(1.7e9 + period_s * static_cast<double>(i))}, mib * kMiB);
    if (i % 20 != 19) continue;
    const Finding f = judge->finding();
    RC_ASSERT(f.state != State::cycling);
    RC_ASSERT(f.state != State::falling);
    RC_ASSERT(f.pattern != Pattern::cyclic);
  }
}

TEST(EarlierLevel, ALeakBelowAPlateauIsSuspectedEarlyAndConfirmedInTime) {
  struct Case {
    double plateau_gib, fall_to_gib, mib_per_min;
  };
  for (const Case& c : {Case{78, 30, 100}, Case{63, 45, 100}, Case{63.4, 47.3, 157}, Case{70, 20, 40}})
    for (const double period_s : {1.0, 10.0, 30.0}) {
      constexpr double kFall_s = 3600;
      const double rate = c.mib_per_min * kMiB / 60;
      const double life_s = (80 - c.fall_to_gib) * kGiB / rate;
      const Raised raised = feed(
          [&](double t) {
            if (t < 60) return 2 * kGiB + (c.plateau_gib - 2) * kGiB * t / 60;
            return t < kFall_s ? c.plateau_gib * kGiB : c.fall_to_gib * kGiB + rate * (t - kFall_s);
          },
          kFall_s + life_s, period_s, 80 * kGiB, {}, kFall_s);
      ASSERT_TRUE(raised.suspected_s && raised.confirmed_s)
          << c.plateau_gib << " to " << c.fall_to_gib << " at " << period_s << " s";
      EXPECT_LT(*raised.suspected_s, kFall_s + 0.45 * life_s) << c.plateau_gib << " to " << c.fall_to_gib;
      // At the latest, a quarter of the life, or an hour, is left.
      EXPECT_LT(*raised.confirmed_s, kFall_s + std::max(0.8 * life_s, life_s - 3600)) << c.plateau_gib;
    }
}

TEST(EarlierLevel, CyclesOfAnyKindStillHoldAgainstTheNext) {
  const std::vector<std::pair<const char*, Shape>> healthy = {
      {"sawtooth of 20 min", [](double t) { return 8 * kGiB + 6 * kGiB * std::fmod(t, 1200) / 1200; }},
      {"sawtooth of 2 h", [](double t) { return 30 * kGiB + 20 * kGiB * std::fmod(t, 7200) / 7200; }},
      {"load on and off", [](double t) { return std::fmod(t, 1800) < 900 ? 60 * kGiB : 20 * kGiB; }},
  };
  for (const auto& [name, shape] : healthy) {
    bool after_first = false;
    feed(shape, 12 * 3600, 10, 80 * kGiB, [&](double t, const Detector& judge) {
      if (t > 7200) after_first |= judge.alerting();
    });
    EXPECT_FALSE(after_first) << name;
  }
}

// A rival that has been ruled out stays so as long as the growth continues; only windows forget.
RC_GTEST_PROP(Confidence, FallsByAtMostTwoHundredthsWhileTheSameGrowthGoesOn, ()) {
  const KinkedGrowth growth;
  double highest = 0;
  feed([&](double t) { return growth.used_bytes(t); }, growth.flat_s + growth.life_s, growth.period_s,
       growth.limit_gib * kGiB,
       [&](double t, const Detector& judge) {
         if (t < growth.flat_s + 300 || std::fmod(t, 120) >= growth.period_s) return;
         const Finding f = judge.finding();
         if (f.state != State::growing && !f.leak) return;
         RC_LOG() << fmt::format("{} s: {} after {}, {}\n", t, f.confidence, highest, f.because);
         RC_ASSERT(f.confidence >= highest - 0.02);
         highest = std::max(highest, f.confidence);
       });
}

/// A load of a minute and a half, a standstill, and 120 MiB/min from the tenth minute on, as drivers report it.
double readme_mib(double t) {
  const double loaded = 500 + 15000 * std::clamp((t - 30) / 90, 0.0, 1.0);
  return std::floor(loaded + 2 * std::max(0.0, t - 600) + 15 * std::sin(t) * std::sin(t / 7));
}

// Whichever scale shows it: one onset, one probability that does not fall, the R2 of the line that is shown, and a
// forecast of the end that becomes ever more precise.
TEST(OneGrowth, IsToldAsOneStoryAtEachMinute) {
  std::optional<Timestamp> onset;
  double highest = 0;
  double narrowest = 10;
  feed([](double t) { return readme_mib(t) * kMiB; }, 5000, 5, 24 * kGiB,
       [&](double t, const Detector& judge) {
         if (t < 1200 || std::fmod(t, 60) != 0) return;
         const Finding f = judge.finding();
         ASSERT_TRUE(grows(f)) << t << " s: " << f.because;
         ASSERT_TRUE(f.onset);
         if (!onset) onset = f.onset;
         EXPECT_NEAR(seconds_between(Timestamp{from_seconds(1.7e9)}, *f.onset), 600, 60) << t << " s";
         EXPECT_NEAR(seconds_between(*onset, *f.onset), 0, 60) << t << " s";
         EXPECT_GE(f.confidence, highest - 0.02) << t << " s";
         EXPECT_GE(f.r_squared, t < 1800 ? 0.8 : 0.98) << t << " s";
         EXPECT_NEAR(f.growth_bytes_per_s.mid, 2 * kMiB, 0.1 * kMiB) << t << " s";
         highest = std::max(highest, f.confidence);
         if (!f.oom_in_s || f.oom_in_s->mid < 600) return;  // in the last minutes, ratios are meaningless
         const double width = std::log(f.oom_in_s->high / f.oom_in_s->low);
         EXPECT_LE(width, 1.3 * narrowest) << t << " s";
         narrowest = std::min(narrowest, width);
       });
  EXPECT_TRUE(onset);
}

// Eight minutes of load and fifty of a slower leak in the same program, at any period: the load is one growth, the leak
// another, with an onset of its own.
TEST(OneGrowth, ALeakThatFollowsALoadHasItsOwnOnset) {
  for (const double period_s : {2.0, 5.0, 15.0}) {
    Finding last;
    bool suspects = false;
    feed(
        [](double t) {
          return std::floor(400 + 9000 * std::min(1.0, t / 480) + 95.0 / 60 * std::max(0.0, t - 480)) * kMiB;
        },
        58 * 60, period_s, 24 * kGiB,
        [&](double, const Detector& judge) {
          suspects = judge.suspecting();
          last = judge.finding();
        });
    EXPECT_TRUE(suspects) << period_s;
    EXPECT_TRUE(grows(last)) << last.because;
    ASSERT_TRUE(last.onset);
    EXPECT_NEAR(seconds_between(Timestamp{from_seconds(1.7e9)}, *last.onset), 480, 60) << period_s;
    EXPECT_NEAR(last.growth_bytes_per_s.mid * 60 / kMiB, 95, 2) << period_s;
  }
}

// A series that levels off bends all the way: its tail is not a growth of its own. In a coarser scale, the bucket in
// which a growth began also contains the load before it.
TEST(OneGrowth, TheLoadBeforeItIsNoPartOfItsRateAtAnyScale) {
  constexpr double kRate = 86 * kMiB / kSecondsPerMinute;
  const auto with_load = [](double t) { return (t < 16 ? 1 + 22 * t / 8 : 60) * kGiB + kRate * t; };
  int told = 0;
  feed(with_load, 20 * kSecondsPerHour, 8, 192 * kGiB, [&](double t, const Detector& judge) {
    if (t < 15 * kSecondsPerMinute || std::fmod(t, 40) != 0) return;
    const Finding f = judge.finding();
    ASSERT_TRUE(grows(f)) << t << " s: " << f.because;
    EXPECT_NEAR(f.growth_bytes_per_s.mid, kRate, 0.05 * kRate) << t << " s: " << f.because;
    ++told;
  });
  EXPECT_GT(told, 1000);
}

TEST(OneGrowth, TheTailOfASettlingRiseIsNoLeak) {
  const std::vector<std::pair<const char*, Shape>> settling = {
      {"logarithm", [](double t) { return 4 * kGiB + 3 * kGiB * std::log1p(t / 60); }},
      {"exponential", [](double t) { return 4 * kGiB + 12 * kGiB * (1 - std::exp(-t / 900)); }},
  };
  for (const auto& [name, shape] : settling) {
    bool alerted = false;
    feed(shape, 4 * 3600, 5, 80 * kGiB, [&](double, const Detector& judge) { alerted |= judge.alerting(); });
    EXPECT_FALSE(alerted) << name;
  }
}

// A young program that rises straight from its start may be loading, whatever it already holds; one that works may be
// loading only at its start and fast, and a slow rise is not a load.
TEST(OneGrowth, MayBeALoadThatDoesNotFit) {
  bool may_load = false;
  const Look look = [&](double, const Detector& judge) { may_load = judge.may_be_loading(); };
  const Shape fast = [](double t) { return 400 * kMiB + 24 * kGiB * std::max(0.0, t - 30) / 180; };
  feed(fast, 205, 2, 24 * kGiB, look);
  EXPECT_TRUE(may_load) << "at 97 % of the card";
  feed(fast, 205, 2, 24 * kGiB, look, 0, true);
  EXPECT_TRUE(may_load) << "it converts what it loads";
  const Shape slower = [](double t) { return 400 * kMiB + 24 * kGiB * std::max(0.0, t - 30) / 3600; };
  feed(slower, 2000, 5, 24 * kGiB, look);
  EXPECT_TRUE(may_load);
  feed(slower, 2000, 5, 24 * kGiB, look, 0, true);
  EXPECT_FALSE(may_load) << "it works";
  feed([](double t) { return 2 * kGiB + 0.5 * kMiB * t; }, 3600, 5, 24 * kGiB, look);
  EXPECT_FALSE(may_load) << "a leak of half an MiB a second";
}

}  // namespace
}  // namespace vramtrack
