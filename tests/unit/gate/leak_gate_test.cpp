// The leak gate's promise: healthy bodies do not fail, a leak of 0.5 MiB per iteration under the same noise is detected
// at least 98 times in 100, and no leak passes. Seeds are the run's number, so a failure can be repeated.
#include "gate/leak_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "families.hpp"

namespace vramtrack::gate {
namespace {

using made::Family;
using made::kMib;

GrowthResult run_gate(const Family& family, std::uint64_t seed, double leak_mib) {
  const std::vector<double> y = made::series_of(family, seed, leak_mib);
  LeakGate gate({0.2 * kMib, 1e-4, 4}, {});
  for (std::size_t i = 0; i < y.size() && !gate.finished(); ++i) gate.add(y[i]);
  EXPECT_TRUE(gate.finished());
  return gate.result();
}

class LeakGateFamilies : public testing::TestWithParam<Family> {};

// `make gate-families` runs each 200 times or more.
TEST_P(LeakGateFamilies, HealthyNeverFails) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const GrowthResult r = run_gate(GetParam(), seed, 0);
    ASSERT_NE(r.outcome, Outcome::fails) << "seed " << seed << ": " << r.because;
    ASSERT_NE(r.outcome, Outcome::too_short) << "seed " << seed << ": " << r.because;
  }
}

TEST_P(LeakGateFamilies, ALeakOfHalfAMebibyteIsCaught98Of100AndNeverPasses) {
  const auto quiet = made::quiet_enough_for_a_small_leak();
  const bool is_quiet = std::find(quiet.begin(), quiet.end(), GetParam().name) != quiet.end();
  const int runs = 50;
  int caught = 0;
  for (std::uint64_t seed = 5001; seed <= 5000 + runs; ++seed) {
    const GrowthResult r = run_gate(GetParam(), seed, 0.5);
    EXPECT_NE(r.outcome, Outcome::passes) << "seed " << seed << ": " << r.because;
    caught += r.outcome == Outcome::fails;
  }
  if (is_quiet) {
    EXPECT_GE(caught, 0.98 * runs);
  }
}

const auto name_of = [](const testing::TestParamInfo<Family>& each) { return std::string(each.param.name); };
INSTANTIATE_TEST_SUITE_P(Families, LeakGateFamilies, testing::ValuesIn(made::healthy_families()), name_of);

class LeakGateLeaks : public testing::TestWithParam<Family> {};

TEST_P(LeakGateLeaks, NeverPass) {
  for (std::uint64_t seed = 9001; seed <= 9050; ++seed) {
    const GrowthResult r = run_gate(GetParam(), seed, 0);
    EXPECT_NE(r.outcome, Outcome::passes) << "seed " << seed << ": " << r.because;
  }
}

INSTANTIATE_TEST_SUITE_P(Leaks, LeakGateLeaks, testing::ValuesIn(made::leaking_families()), name_of);

/// Garbage of 2 MiB per iteration, all collected every `period` iterations, starting `phase` iterations into the first.
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
  // Periods shorter than a block of 1,024 iterations; longer ones hide the leak.
  for (std::size_t period = 2; period <= 40; ++period)
    EXPECT_EQ(run_sawtooth(period, period / 2, 2).outcome, Outcome::fails) << "period " << period;
}

TEST(LeakGate, AReleaseOfSomethingElseHidesNoLeak) {
  // 2 GiB that were there from the start are released at iteration 600; 1 MiB per iteration is kept before and after.
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
  EXPECT_EQ(leak.used_bytes().size(), 1024u) << "a cache that fills is as straight";
  EXPECT_EQ(leak.result().outcome, Outcome::fails);

  LeakGate no_room({0.2 * kMib, 1e-4, 4}, {}, 2e9);
  used = 1e9;
  while (!no_room.finished()) no_room.add(used += 3 * kMib);
  EXPECT_EQ(no_room.used_bytes().size(), 256u) << "512 of them would not fit";
  EXPECT_EQ(no_room.result().outcome, Outcome::fails);
}

TEST(LeakGate, ZerosAreNothingMeasured) {
  LeakGate gate({0.2 * kMib, 1e-4, 4}, {});
  while (!gate.finished()) gate.add(0);
  EXPECT_EQ(gate.result().outcome, Outcome::inconclusive);
  EXPECT_EQ(gate.result().because, "is 0 bytes in all 1024 iterations: nothing was measured");
  GrowthLimits counted{0.2 * kMib, 1e-4, 4};
  counted.zeros_are_counted = true;
  LeakGate freed(counted, {});
  while (!freed.finished()) freed.add(0);
  EXPECT_EQ(freed.result().outcome, Outcome::passes) << "everything is freed each time";
  LeakGate unknown(counted, {});
  while (!unknown.finished()) unknown.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(unknown.result().nothing_measured);
}

TEST(LeakGate, ACacheThatFillsBeforeTheEndIsNoLeak) {
  for (const std::size_t capacity : {200U, 400U, 600U, 800U, 950U}) {
    LeakGate gate({0.2 * kMib, 1e-4, 4}, {});
    for (std::size_t i = 0; !gate.finished(); ++i)
      gate.add(1e9 + 5 * kMib * static_cast<double>(std::min(i, capacity)));
    EXPECT_NE(gate.result().outcome, Outcome::fails) << capacity;
    if (capacity > 512) {
      EXPECT_NE(gate.result().outcome, Outcome::passes) << capacity;
    }
  }
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
