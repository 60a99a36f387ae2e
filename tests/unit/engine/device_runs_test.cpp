// When a device's run begins and when it has ended, judged by readings alone.
#include "engine/device_runs.hpp"

#include <gtest/gtest.h>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

constexpr double kEvery_s = 20;
constexpr std::uint64_t kIdle = 400 * kMiB;
constexpr std::uint64_t kTenant = 6 * kGiB;

class DeviceRunsTest : public testing::Test {
 protected:
  /// Readings at one level. Returns whether a run began with one of them.
  bool read(std::uint64_t bytes, int times = 1) {
    bool begun = false;
    for (int i = 0; i < times; ++i) {
      begun |= runs.read(at(now), bytes, {768.0 * kMiB, 64 * kMiB, 100}, last_end);
      last_bytes = bytes;
      now += kEvery_s;
    }
    return begun;
  }
  /// The run ends with the last reading, and the next one shows the remaining memory.
  bool falls_to(std::uint64_t left) {
    End end;
    end.time = at(now - kEvery_s);
    end.how = EndKind::out_of_memory;
    end.used_bytes = last_bytes;
    end.growth_bytes_per_s = 3.0 * kMiB;
    last_end = end;
    EXPECT_TRUE(runs.close(end, at(now), left));
    return read(left);
  }
  void leak_to(std::uint64_t bytes) {
    for (std::uint64_t used = last_bytes; used < bytes; used += 100 * kMiB) read(used);
  }

  DeviceRuns runs;
  std::optional<End> last_end;
  double now = 0;
  std::uint64_t last_bytes = 0;
};

TEST_F(DeviceRunsTest, AnIdleReadingEndsARun) {
  EXPECT_FALSE(read(kIdle, 3));
  EXPECT_TRUE(read(8 * kGiB, 10));
  EXPECT_FALSE(read(kIdle, 5));
  EXPECT_FALSE(runs.goes_on());
  EXPECT_TRUE(read(8 * kGiB, 10));
  ASSERT_EQ(runs.all().size(), 2U);
  EXPECT_EQ(runs.all()[0].begin, at(60));
  EXPECT_EQ(runs.all()[0].end, at(240));
  EXPECT_EQ(runs.all()[1].begin, at(360));
  EXPECT_EQ(runs.rest_bytes(), kIdle);
}

TEST_F(DeviceRunsTest, WhatATenantHoldsIsNoRun) {
  read(8 * kGiB);
  leak_to(23 * kGiB);
  const double crash = now;
  EXPECT_FALSE(falls_to(kTenant));
  EXPECT_FALSE(read(kTenant, 200));
  EXPECT_EQ(runs.all().size(), 1U);
  const double begins = now;
  EXPECT_TRUE(read(8 * kGiB));
  ASSERT_EQ(runs.all().size(), 2U);
  EXPECT_EQ(runs.all()[0].end, at(crash - kEvery_s));
  EXPECT_EQ(runs.all()[1].begin, at(begins));
  EXPECT_EQ(runs.rest_bytes(), kTenant);
}

TEST_F(DeviceRunsTest, TheNextRunMayBeThereAtOnceAndGrow) {
  read(2 * kGiB);
  leak_to(23 * kGiB);
  const double crash = now;
  falls_to(2 * kGiB);
  leak_to(6 * kGiB);
  ASSERT_EQ(runs.all().size(), 2U);
  EXPECT_LE(seconds_between(at(crash), runs.all()[1].begin), 2 * kEvery_s);
  EXPECT_FALSE(runs.rest_bytes()) << "a single reading may be the next run's first";
}

TEST_F(DeviceRunsTest, TheNextRunMayBeThereAtOnceAndStandStill) {
  read(2 * kGiB);
  leak_to(23 * kGiB);
  const double crash = now;
  falls_to(4 * kGiB);
  read(4 * kGiB, 10);
  ASSERT_EQ(runs.all().size(), 2U);
  EXPECT_EQ(runs.all()[1].begin, at(crash));
}

TEST_F(DeviceRunsTest, WhereProcessesAreListedARunBeginsWithOne) {
  runs.came(at(0));
  read(8 * kGiB);
  leak_to(23 * kGiB);
  falls_to(kTenant);
  EXPECT_FALSE(read(kTenant + kGiB, 20)) << "the tenant grows";
  runs.came(at(now));
  const double begins = now;
  EXPECT_TRUE(read(8 * kGiB));
  EXPECT_EQ(runs.all().back().begin, at(begins));
}

TEST_F(DeviceRunsTest, APrecedentIsWhatRanOut) {
  EXPECT_FALSE(runs.precedent());
  read(8 * kGiB);
  leak_to(23 * kGiB);
  falls_to(kIdle);
  read(8 * kGiB, 10);
  read(kIdle, 5);
  const auto precedent = runs.precedent();
  ASSERT_TRUE(precedent);
  EXPECT_EQ(precedent->ran_out, 1);
  EXPECT_EQ(precedent->ended, 2);
  EXPECT_DOUBLE_EQ(precedent->growth_bytes_per_s, 3.0 * kMiB);
}

TEST_F(DeviceRunsTest, AreBounded) {
  for (int i = 0; i < 600; ++i) {
    read(8 * kGiB);
    read(kIdle);
  }
  EXPECT_EQ(runs.all().size(), DeviceRuns::kMaxRuns);
}

TEST(FirstAlert, IsTheFirstOfTheRunThatWasNotWithdrawn) {
  vramtrack::Run run;
  run.begin = at(100);
  run.end = at(1000);
  std::vector<Alert> alerts(4);
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    alerts[i].finding.leak = true;
    alerts[i].raised = at(50 + 100.0 * static_cast<double>(i));
  }
  alerts[1].ended = AlertEnd::withdrawn;
  EXPECT_EQ(first_alert_of(run, alerts), at(250));
  run.end = at(200);
  EXPECT_FALSE(first_alert_of(run, alerts));
}

}  // namespace
}  // namespace vramtrack
