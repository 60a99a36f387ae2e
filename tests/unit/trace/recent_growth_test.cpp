#include "trace/recent_growth.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

namespace vramtrack::trace {
namespace {

/// A program with 20 steps per second that is queried every second; sites 1 and 2 churn.
struct Program {
  RecentGrowth growth;
  std::uint64_t next = 1;
  std::map<SiteNumber, double> told;  ///< when each rise was reported
  std::map<SiteNumber, RecentRise> rises;
  std::map<SiteNumber, std::vector<std::uint64_t>> kept;

  void keep(SiteNumber site, std::uint64_t bytes, double time_s) {
    growth.allocate(next, bytes, site, time_s);
    kept[site].push_back(next++);
  }
  void drop_all(SiteNumber site, double time_s) {
    for (const std::uint64_t address : kept[site]) growth.free(address, time_s);
    kept[site].clear();
  }
  void churn(SiteNumber site, double time_s) {
    growth.allocate(next, 1000, site, time_s);
    growth.free(next++, time_s);
  }
  void run(double seconds, const std::function<void(int step, double time_s)>& step) {
    for (int i = 0; i < static_cast<int>(20 * seconds); ++i) {
      const double time_s = 0.05 * i + 0.01;
      step(i, time_s);
      if (i % 20 != 0) continue;
      for (const RecentRise& rise : growth.rises(time_s)) {
        EXPECT_FALSE(told.contains(rise.site));
        told[rise.site] = time_s;
        rises[rise.site] = rise;
      }
    }
  }
};

TEST(RecentGrowth, ALeakIsToldWithinHalfAMinuteHoweverLateItBegins) {
  for (const double onset_s : {20.0, 61.3, 600.0, 3600.0}) {
    Program program;
    program.run(onset_s + 40, [&](int, double time_s) {
      program.churn(1, time_s);
      program.churn(2, time_s);
      if (time_s >= onset_s) program.keep(3, 512, time_s);
    });
    ASSERT_TRUE(program.told.contains(3)) << onset_s;
    EXPECT_LT(program.told[3], onset_s + 30) << onset_s;
    EXPECT_NEAR(program.rises[3].since_s, onset_s, 0.1);
    EXPECT_NEAR(program.rises[3].bytes_per_s, 20 * 512, 300);
    EXPECT_EQ(program.told.size(), 1U);
  }
}

TEST(RecentGrowth, ALineThatChurnedBeforeMayBeginToKeep) {
  Program program;
  program.run(100, [&](int, double time_s) {
    program.churn(1, time_s);
    program.churn(3, time_s);
    if (time_s >= 60) program.keep(3, 512, time_s);
  });
  EXPECT_LT(program.told[3], 90);
  EXPECT_NEAR(program.rises[3].since_s, 60, 2.5);
}

TEST(RecentGrowth, ASlowLeakIsToldAtACoarserScale) {
  Program program;
  program.run(400, [&](int step, double time_s) {
    program.churn(1, time_s);
    if (time_s >= 200 && step % 160 == 0) program.keep(3, 100'000, time_s);  // every 8 s
  });
  ASSERT_TRUE(program.told.contains(3));
  EXPECT_LT(program.told[3], 200 + 90);
}

TEST(RecentGrowth, AnotherPhaseIsNoLeak) {
  Program program;
  program.run(120, [&](int, double time_s) {
    program.churn(1, time_s);
    if (time_s < 60) return program.churn(2, time_s), program.churn(4, time_s);
    program.keep(3, 512, time_s);  // an evaluation collects its predictions, and trains nothing meanwhile
  });
  EXPECT_TRUE(program.told.empty());
}

TEST(RecentGrowth, WhatIsGivenBackAndWhatFillsAreNoLeaks) {
  Program program;
  program.run(400, [&](int step, double time_s) {
    program.churn(1, time_s);
    program.keep(3, 512, time_s);  // an epoch of 25 s
    if (step % 500 == 499) program.drop_all(3, time_s);
    // A cache with fewer and fewer misses.
    const double entries = time_s < 100 ? 0 : 200 * (1 - std::exp(-(time_s - 100) / 10));
    while (static_cast<double>(program.kept[5].size()) < entries) program.keep(5, 512, time_s);
  });
  EXPECT_FALSE(program.told.contains(3)) << program.told[3];
  EXPECT_FALSE(program.told.contains(5)) << program.told[5] << " " << program.rises[5].since_s;
}

TEST(RecentGrowth, TheStartOfAProgramIsJudgedByOthers) {
  Program program;
  program.run(100, [&](int, double time_s) {
    program.churn(1, time_s);
    program.keep(3, 512, time_s);
  });
  EXPECT_TRUE(program.told.empty());
}

TEST(RecentGrowth, AFewBlocksAmongMuchMemoryAreNotTold) {
  Program program;
  program.keep(9, 1'000'000'000, 0);
  program.run(200, [&](int step, double time_s) {
    program.churn(1, time_s);
    if (time_s >= 100 && step % 50 == 0 && time_s < 122) program.keep(3, 512, time_s);
  });
  EXPECT_TRUE(program.told.empty());
}

TEST(RecentGrowth, LinesOfOneStepComeInTheirOrder) {
  Program program;
  program.run(100, [&](int, double time_s) {
    program.churn(1, time_s);
    if (time_s < 50) return;
    program.keep(3, 5000, time_s);
    program.keep(4, 512, time_s + 0.01);
  });
  ASSERT_EQ(program.rises.size(), 2U);
  EXPECT_LT(program.rises[3].first_s, program.rises[4].first_s);
}

}  // namespace
}  // namespace vramtrack::trace
