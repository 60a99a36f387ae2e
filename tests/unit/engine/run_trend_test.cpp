// Trends that the runs of a program show in sequence, but no run by itself.
#include <gmock/gmock.h>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;

/// Runs with peaks that are each `step` above the previous one.
class RunsTrend : public OneGpu {
 protected:
  void begin(bool remembers) {
    known_programs.clear();
    start();
    if (remembers) engine->remember(memory_of_programs());
  }
  void runs(const std::vector<double>& peaks_gib) {
    for (const double peak : peaks_gib) {
      const std::uint32_t pid = ++pid_;
      last = process(pid, "python train.py");
      for (double age = 0; age < 600; age += 10, t += 10) {
        const auto bytes = static_cast<std::uint64_t>((age < 60 ? 1 : peak) * static_cast<double>(kGiB));
        tick(t, bytes + kGiB / 2, {{last, bytes}});
      }
      now = seen(last).verdict.finding;
      of_device = seen(device_series).verdict.finding;
      end_process(t, pid);
      tick(t, kGiB / 2);
      t += 60;
    }
  }
  double t = 0;
  std::uint32_t pid_ = 100;
  SeriesId last{};
  Finding now;
  Finding of_device;
};

TEST_F(RunsTrend, FiveInARowAreSuspected) {
  for (const bool remembers : {false, true}) {
    begin(remembers);
    t += 100000;
    runs({10, 12, 14, 16});
    EXPECT_EQ(now.stage, Stage::none);
    runs({18.5});
    EXPECT_EQ(now.stage, Stage::suspected);
    EXPECT_GT(now.confidence, 0.8);
    EXPECT_THAT(now.because, HasSubstr("each of the last 5 runs of the program peaked higher than the one before, by "
                                       "2.1 GiB on average and by 8.5 GiB in all; 2 more fit; odds of this by chance: "
                                       "1 in 120"));
    EXPECT_EQ(of_device.stage, Stage::suspected);
    EXPECT_THAT(of_device.because, HasSubstr("each of the last 5 runs"));
    EXPECT_EQ(seen(last).suspicions.size(), 1U);
    EXPECT_FALSE(now.leak);
  }
}

TEST_F(RunsTrend, RunsThatDifferAreNone) {
  begin(false);
  runs({10, 14, 12, 16, 15, 17, 11, 18});
  EXPECT_EQ(now.stage, Stage::none);
}

/// No process is listed, and the remaining memory belongs to none: each run begins where the previous one left off.
TEST_F(RunsTrend, WhatEachRunLeavesOnTheDeviceIsALeakWhenTheNextDoesNotFit) {
  begin(false);
  Finding finding;
  for (int run = 0; run < 5; ++run)
    for (int minute = 0; minute < 10; ++minute, t += 60) {
      const double gib = 3 + 1.9 * run + (minute < 2 ? 0 : std::min(12.6, 6.0 * minute - 8));
      tick(t, static_cast<std::uint64_t>(gib * static_cast<double>(kGiB)));
      finding = seen(device_series).verdict.finding;
      if (run < 4) {
        EXPECT_FALSE(finding.leak) << t;
      }
    }
  EXPECT_TRUE(finding.leak) << finding.because;
  EXPECT_THAT(finding.because, HasSubstr("each of the last 5 cycles began higher than the one before"));
  tick(t, 200 * kMiB);
  for (int i = 1; i < 5; ++i) tick(t + 60 * i, 200 * kMiB);
  EXPECT_TRUE(std::any_of(seen(device_series).suspicions.begin(), seen(device_series).suspicions.end(),
                          [](const Alert& a) { return a.finding.leak && a.ended != AlertEnd::withdrawn; }) ||
              !seen(device_series).alerts.empty());
}

}  // namespace
}  // namespace vramtrack
