// The leak gate's promise: healthy bodies pass 1,000 times of 1,000, a leak of 0.5 MiB an iteration under the same
// noise is caught at least 99 times of 100. Seeds are the run's number, so a failure can be repeated.
#include "gate/leak_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "series.hpp"

namespace vramtrack::gate {
namespace {

using made::kMib;
using made::Random;

struct Family {
  std::string_view name;
  void (*make)(std::vector<double>& y, Random& random);
  bool leaks_are_found;  ///< of 0.5 MiB an iteration, at least 99 of 100; false: more noise than that can be seen under

  friend void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }
};

void warms_up(std::vector<double>& y, Random& random) {
  made::add_warm_up(y, 1000, 20);
  made::add_jitter(y, 2, random);
}
void warms_up_long(std::vector<double>& y, Random& random) {
  made::add_warm_up(y, 2000, 100);
  made::add_jitter(y, 1, random);
}
void ramps(std::vector<double>& y, Random& random) {
  made::add_ramp(y, 4000, 150);
  made::add_jitter(y, 2, random);
}
void quiet(std::vector<double>& y, Random& random) {
  made::add_warm_up(y, 300, 3);
  made::add_jitter(y, 0.01, random);
}
void caches(std::vector<double>& y, Random& random) {
  made::add_warm_up(y, 300, 5);
  made::add_cache(y, 4, 64, random);
  made::add_jitter(y, 2, random);
}
void quiet_caches(std::vector<double>& y, Random& random) {
  made::add_cache(y, 4, 20, random);
  made::add_jitter(y, 0.01, random);
}
void wanders(std::vector<double>& y, Random& random) {
  made::add_warm_up(y, 300, 5);
  made::add_wander(y, 10, 0.9, random);
}
void walks(std::vector<double>& y, Random& random) {
  made::add_wander(y, 2, 1, random);
}
void collects(std::vector<double>& y, Random& random) {
  made::add_garbage(y, 3, 17);
  made::add_jitter(y, 0.5, random);
}
/// A model that is made ready on the device and then replaced by a smaller one.
void starts_high(std::vector<double>& y, Random& random) {
  for (std::size_t i = 0; i < y.size() && i < 40; ++i) y[i] += 3000 * kMib;
  made::add_jitter(y, 0.5, random);
}
/// An evaluation every 200 iterations holds 1 GiB for five.
void evaluates(std::vector<double>& y, Random& random) {
  for (std::size_t i = 0; i < y.size(); ++i)
    if (i % 200 >= 100 && i % 200 < 105) y[i] += 1024 * kMib;
  made::add_jitter(y, 0.5, random);
}
/// Collected at odd times, 10 to 50 iterations apart, and not always whole.
void collects_at_odds(std::vector<double>& y, Random& random) {
  std::uniform_real_distribution<double> uniform;
  double garbage = 0;
  double left = 50 * uniform(random);
  for (double& each : y) {
    garbage += 3 * kMib;
    if (--left < 0) {
      garbage *= 0.2 * uniform(random);
      left = 10 + 40 * uniform(random);
    }
    each += garbage;
  }
  made::add_jitter(y, 0.5, random);
}
void all_of_it(std::vector<double>& y, Random& random) {
  made::add_warm_up(y, 800, 15);
  made::add_cache(y, 3, 64, random);
  made::add_jitter(y, 1.5, random);
  made::add_wander(y, 1, 0.9, random);
}

constexpr Family kFamilies[] = {
    {"warms_up", warms_up, true},
    {"warms_up_long", warms_up_long, true},
    {"ramps", ramps, true},
    {"quiet", quiet, true},
    {"caches", caches, true},
    {"quiet_caches", quiet_caches, true},
    {"wanders", wanders, false},
    {"walks", walks, false},
    {"collects", collects, true},
    {"all_of_it", all_of_it, true},
    {"starts_high", starts_high, true},
    {"evaluates", evaluates, true},
    {"collects_at_odds", collects_at_odds, false},
};

GrowthResult run_gate(const Family& family, std::uint64_t seed, double leak_mib) {
  const Iterations iterations;
  std::vector<double> y(iterations.most, 2048 * kMib);
  Random random(seed);
  family.make(y, random);
  made::add_leak(y, leak_mib);
  LeakGate gate({0.2 * kMib, 1e-4, 4}, iterations);
  for (std::size_t i = 0; i < y.size() && !gate.finished(); ++i) gate.add(y[i]);
  EXPECT_TRUE(gate.finished());
  return gate.result();
}

class LeakGateFamilies : public testing::TestWithParam<Family> {};

TEST_P(LeakGateFamilies, HealthyPasses1000Of1000) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const GrowthResult r = run_gate(GetParam(), seed, 0);
    ASSERT_NE(r.outcome, Outcome::fails) << "seed " << seed << ": " << r.because;
    ASSERT_NE(r.outcome, Outcome::too_short) << "seed " << seed << ": " << r.because;
  }
}

TEST_P(LeakGateFamilies, ALeakOfHalfAMebibyteIsCaught99Of100) {
  if (!GetParam().leaks_are_found) GTEST_SKIP() << "wanders by more than the leak grows within 1,024 iterations";
  const int runs = 500;
  int caught = 0;
  for (std::uint64_t seed = 5001; seed <= 5000 + runs; ++seed)
    caught += run_gate(GetParam(), seed, 0.5).outcome == Outcome::fails;
  RecordProperty("caught", caught);
  EXPECT_GE(caught, 0.99 * runs);
}

INSTANTIATE_TEST_SUITE_P(Families, LeakGateFamilies, testing::ValuesIn(kFamilies),
                         [](const auto& each) { return std::string(each.param.name); });

/// Garbage of 2 MiB an iteration, all collected every `period` iterations, `phase` iterations into the first of them.
GrowthResult run_sawtooth(std::size_t period, std::size_t phase, double leak_mib) {
  Iterations iterations;
  LeakGate gate({0.2 * kMib, 1e-4, 4}, iterations);
  for (std::size_t i = 0; !gate.finished(); ++i)
    gate.add(2048 * kMib + (2 * static_cast<double>((i + phase) % period) + leak_mib * static_cast<double>(i)) * kMib);
  return gate.result();
}

TEST(LeakGate, WhatIsCollectedNowAndThenPassesAtAnyPeriodAndPhase) {
  for (std::size_t period = 2; period <= 128; ++period)
    for (std::size_t phase = 0; phase < period; ++phase) {
      const GrowthResult r = run_sawtooth(period, phase, 0);
      ASSERT_NE(r.outcome, Outcome::fails) << "period " << period << ", phase " << phase << ": " << r.because;
    }
}

TEST(LeakGate, ALeakAsFastAsWhatIsCollectedIsFound) {
  // Shorter than a block of 1,024 iterations; longer ones hide it.
  for (std::size_t period = 2; period <= 40; ++period)
    EXPECT_EQ(run_sawtooth(period, period / 2, 2).outcome, Outcome::fails) << "period " << period;
}

TEST(LeakGate, AReleaseOfSomethingElseHidesNoLeak) {
  // 2 GiB that were there from the beginning go at iteration 600; 1 MiB an iteration is kept before and after.
  std::vector<double> y(1024);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = ((i > 600 ? 2048.0 : 4096.0) + static_cast<double>(i)) * kMib;
  const GrowthResult r = test_growth(y, {0.2 * kMib, 1e-4, 4});
  EXPECT_EQ(r.outcome, Outcome::fails) << r.because;
  EXPECT_NEAR(r.growth_bytes, kMib, 0.01 * kMib);
}

TEST(LeakGate, StopsAsSoonAsItKnows) {
  LeakGate flat({0, 1e-4, 4}, {});
  while (!flat.finished()) flat.add(1e9);
  EXPECT_EQ(flat.used_bytes().size(), 128u);
  EXPECT_EQ(flat.result().outcome, Outcome::passes);

  LeakGate leak({0.2 * kMib, 1e-4, 4}, {});
  double used = 1e9;
  while (!leak.finished()) leak.add(used += kMib);
  EXPECT_EQ(leak.used_bytes().size(), 256u) << "a failure is seen twice";
  EXPECT_EQ(leak.result().outcome, Outcome::fails);
}

TEST(LeakGate, IterationsAreRaisedToWhatTheErrorRateNeeds) {
  LeakGate gate({0.2 * kMib, 1e-4, 4}, {10, 10});
  double used = 1e9;
  while (!gate.finished()) gate.add(used += kMib);
  EXPECT_GE(gate.used_bytes().size(), least_iterations({0.2 * kMib, 1e-4, 4}));
  EXPECT_EQ(gate.result().outcome, Outcome::fails);
}

}  // namespace
}  // namespace vramtrack::gate
