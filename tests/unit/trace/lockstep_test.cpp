#include "trace/lockstep.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <random>

namespace vramtrack::trace {
namespace {

/// Blocks every `period_us`, `steps` times, at `phases_us` within it.
SiteBlocks regular(std::size_t steps, std::uint64_t period_us, const std::vector<std::uint64_t>& phases_us) {
  SiteBlocks out;
  for (std::size_t i = 0; i < steps; ++i)
    for (const std::uint64_t phase_us : phases_us) out.births_us.push_back(i * period_us + phase_us);
  return out;
}

TEST(Lockstep, OneBlockEachOfEveryStep) {
  const SiteBlocks input = regular(20, 100, {10}), loss = regular(20, 100, {60});
  const Lockstep found = lockstep_of(input, loss, {});
  EXPECT_TRUE(found.is_together);
  EXPECT_EQ(found.in_step, 1U);
  EXPECT_FALSE(found.follows);
  EXPECT_TRUE(lockstep_of(loss, input, {}).follows);
}

TEST(Lockstep, TooFewStepsSayNothing) {
  EXPECT_FALSE(lockstep_of(regular(5, 100, {10}), regular(5, 100, {60}), {}).is_together);
  EXPECT_TRUE(lockstep_of(regular(6, 100, {10}), regular(6, 100, {60}), {}).is_together);
}

TEST(Lockstep, TheSameMicrosecondIsEitherOrder) {
  SiteBlocks a = regular(40, 100, {10}), b = a;
  for (std::size_t i = 0; i < 40; i += 2) ++b.births_us[i];
  EXPECT_TRUE(lockstep_of(a, b, {}).is_together);
  EXPECT_TRUE(lockstep_of(b, a, {}).is_together);
}

TEST(Lockstep, SeveralInAStepComeInABurst) {
  const SiteBlocks loss = regular(20, 100, {60});
  EXPECT_TRUE(lockstep_of(regular(20, 100, {10, 20, 30, 40}), loss, {}).is_together);
  // One block per step beside one per epoch of ten steps.
  EXPECT_FALSE(lockstep_of(regular(200, 10, {1}), loss, {}).is_together);
}

TEST(Lockstep, AnOnsetOfItsOwnIsALeakOfItsOwn) {
  SiteBlocks late = regular(60, 100, {60});
  late.births_us.erase(late.births_us.begin(), late.births_us.begin() + 20);
  EXPECT_FALSE(lockstep_of(regular(60, 100, {10}), late, {}).is_together);
}

TEST(Lockstep, CodeThatRunsBetweenTellsTwoStepsFromOne) {
  std::vector<Passing> passing;
  for (std::uint64_t i = 0; i < 20; ++i)
    for (std::uint32_t site = 0; site < 6; ++site) passing.push_back({i * 100 + 15 + 15 * site, site});
  // One in every second step, the other in the remaining ones.
  EXPECT_FALSE(lockstep_of(regular(10, 200, {10}), regular(10, 200, {110}), passing).is_together);
  EXPECT_TRUE(lockstep_of(regular(10, 200, {10}), regular(10, 200, {60}), passing).is_together);
  EXPECT_TRUE(lockstep_of(regular(20, 100, {10}), regular(20, 100, {60}), passing).is_together);
}

TEST(Lockstep, TwoOwnersGiveBackOneAfterTheOther) {
  const auto together = [](std::uint32_t steps, std::uint32_t batch) {
    SiteBlocks a = regular(steps, 100, {10}), b = regular(steps, 100, {60});
    for (std::uint32_t i = 0; i < steps; ++i) {
      a.deaths.push_back(2 * (i - i % batch) + i % batch);
      b.deaths.push_back(a.deaths.back() + batch);
    }
    return lockstep_of(a, b, {}).is_together;
  };
  EXPECT_FALSE(together(200, 200));
  EXPECT_TRUE(together(200, 1));
  // CPython's trashcan.
  EXPECT_TRUE(together(200, 41));
  EXPECT_TRUE(together(40, 40));
}

TEST(Lockstep, AGroupIsInTheOrderOfAStep) {
  const std::vector<SiteBlocks> sites = {
      regular(20, 100, {60}), regular(20, 100, {20, 30, 40}), regular(5, 400, {70}), regular(20, 100, {10}), {}};
  const auto groups = lockstep_groups(sites, {});
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups.back().sites, (std::vector<std::size_t>{3, 1, 0}));
  EXPECT_EQ(groups.back().steps, 20U);
}

/// A program with steps of random length; each step allocates once per phase, and keeps a part.
struct RandomProgram {
  std::mt19937 random{static_cast<std::mt19937::result_type>(*rc::gen::inRange(0, 1 << 30))};
  std::size_t steps = static_cast<std::size_t>(*rc::gen::inRange(60, 400));
  std::vector<std::uint64_t> ends_us;

  RandomProgram() {
    std::uint64_t now_us = 0;
    for (std::size_t i = 0; i < steps; ++i) ends_us.push_back(now_us += 1000 + random() % 5000);
  }
  [[nodiscard]] std::uint64_t at(std::size_t step, double phase) const {
    const std::uint64_t from = step == 0 ? 0 : ends_us[step - 1];
    return from + static_cast<std::uint64_t>(phase * static_cast<double>(ends_us[step] - from));
  }
  /// Every phase in every step.
  [[nodiscard]] std::vector<Passing> passing() const {
    std::vector<Passing> out;
    for (std::size_t step = 0; step < steps; ++step)
      for (std::uint32_t site = 0; site < 20; ++site) out.push_back({at(step, 0.05 * site), site});
    return out;
  }
};

TEST(LockstepProperty, SitesOfOneGraphAreAlwaysOneGroup) {
  EXPECT_TRUE(rc::check("what every kept step holds is one group", [] {
    RandomProgram program;
    // Each step is kept with a probability of its own.
    const double share = 0.01 * *rc::gen::inRange(30, 101);
    std::vector<SiteBlocks> sites(static_cast<std::size_t>(*rc::gen::inRange(2, 7)));
    std::vector<std::vector<double>> phases;
    for (std::size_t i = 0; i < sites.size(); ++i) {
      std::vector<double>& its = phases.emplace_back();
      const auto blocks = *rc::gen::inRange(1, 5);
      for (int block = 0; block < blocks; ++block) its.push_back(0.02 * static_cast<double>(i) + 0.004 * block);
    }
    std::size_t kept = 0;
    for (std::size_t step = 0; step < program.steps; ++step) {
      if (static_cast<double>(program.random() % 1000) >= 1000 * share) continue;
      ++kept;
      for (std::size_t i = 0; i < sites.size(); ++i)
        for (const double phase : phases[i]) sites[i].births_us.push_back(program.at(step, phase));
    }
    RC_PRE(kept >= kLeastSteps);
    // At least one site has one block per step, like a loss.
    sites.push_back({});
    for (std::size_t at = 0; at < sites[0].births_us.size(); at += phases[0].size())
      sites.back().births_us.push_back(sites[0].births_us[at] + 700);
    const auto groups = lockstep_groups(sites, program.passing());
    RC_ASSERT(groups.size() == 1U);
    RC_ASSERT(groups.front().steps == kept);
  }));
}

TEST(LockstepProperty, IndependentSitesAreNeverOneGroup) {
  EXPECT_TRUE(rc::check("sites that keep blocks of steps of their own stay apart", [] {
    RandomProgram program;
    std::vector<SiteBlocks> sites(static_cast<std::size_t>(*rc::gen::inRange(2, 6)));
    const auto passing = program.passing();
    for (std::size_t i = 0; i < sites.size(); ++i) {
      // At random, or in every n-th step from a start of its own.
      const bool is_by_chance = *rc::gen::arbitrary<bool>();
      const auto every = static_cast<std::size_t>(*rc::gen::inRange(2, 7));
      const double phase = 0.15 * static_cast<double>(i) + 0.02;
      for (std::size_t step = 0; step < program.steps; ++step)
        if (is_by_chance ? program.random() % every == 0 : step % (sites.size() * every) == i * every)
          sites[i].births_us.push_back(program.at(step, phase));
    }
    RC_ASSERT(lockstep_groups(sites, passing).size() == sites.size());
  }));
}

}  // namespace
}  // namespace vramtrack::trace
