// Walls of processes: the forecast ends at the nearest of them, and follows it when it moves.
#include <gmock/gmock.h>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kStep_s = 10;
constexpr std::uint64_t kRate = kMiB;  // a second

class WallsTest : public OneGpu {
 protected:
  void wall(double t, std::uint32_t pid, const std::string& name, std::uint64_t bytes) {
    Batch batch;
    Event event;
    event.time = at(t);
    event.kind = Event::Kind::capacity;
    event.device_id = "GPU-a";
    event.pid = pid;
    event.pid_start_ticks = 1000 + pid;
    event.text = name;
    event.capacity_bytes = bytes;
    batch.events.push_back(event);
    engine->ingest(batch);
  }
  /// Process 1 grows by 1 MiB a second from 1 GiB on, beside one that holds 2 GiB.
  void grow(double from_s, double to_s) {
    for (double t = from_s; t < to_s; t += kStep_s) {
      const std::uint64_t used = kGiB + kRate * static_cast<std::uint64_t>(t);
      tick(t, used + 2 * kGiB, {{leaking, used}, {other, 2 * kGiB}});
    }
  }
  /// Seconds until process 1 has grown from what it holds after `t` to `end_bytes`.
  static double left_s(double t, double end_bytes) {
    return (end_bytes - static_cast<double>(kGiB)) / static_cast<double>(kRate) - (t - kStep_s);
  }
  void expect_end(double t, double end_bytes) {
    const Finding finding = seen(leaking).verdict.finding;
    ASSERT_TRUE(finding.oom_in_s) << finding.because;
    EXPECT_NEAR(finding.oom_in_s->mid, left_s(t, end_bytes), 0.05 * left_s(t, end_bytes)) << finding.because;
  }
  void SetUp() override {
    leaking = process(1, "python train.py");
    other = process(2, "python other.py");
    start();
  }
  SeriesId leaking{};
  SeriesId other{};
};

TEST_F(WallsTest, TheForecastEndsAtTheNearestOfThree) {
  wall(0, 1, "dmem.max of /pod", 16 * kGiB);
  wall(0, 1, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid 1", 8 * kGiB);
  wall(0, 1, "PyTorch's per_process_memory_fraction of pid 1", 12 * kGiB);
  grow(0, 3600);
  expect_end(3600, 8.0 * kGiB);
  const std::string because = seen(leaking).verdict.finding.because;
  EXPECT_THAT(because, HasSubstr("its memory ends at 8.0 GiB, by CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid 1"));
  EXPECT_THAT(because, Not(HasSubstr("dmem.max")));
  const auto wall = seen(leaking).wall;
  ASSERT_TRUE(wall);
  EXPECT_EQ(wall->bytes, 8 * kGiB);
  EXPECT_EQ(wall->processes, 1U);
  EXPECT_EQ(wall->name, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid 1");
  EXPECT_FALSE(seen(other).wall);
}

TEST_F(WallsTest, ItFollowsAWallThatMovesOrIsLifted) {
  wall(0, 1, "dmem.max of /pod", 16 * kGiB);
  grow(0, 3600);
  expect_end(3600, 16.0 * kGiB);
  wall(3600, 1, "dmem.max of /pod", 7 * kGiB);
  grow(3600, 3700);
  expect_end(3700, 7.0 * kGiB);
  wall(3700, 1, "dmem.max of /pod", 0);
  grow(3700, 3800);
  expect_end(3800, 22.0 * kGiB);
  EXPECT_THAT(seen(leaking).verdict.finding.because, Not(HasSubstr("its memory ends at")));
}

TEST_F(WallsTest, ProcessesThatShareAWallHoldItTogether) {
  wall(0, 1, "dmem.max of /pod", 10 * kGiB);
  wall(0, 2, "dmem.max of /pod", 10 * kGiB);
  grow(0, 3600);
  expect_end(3600, 8.0 * kGiB);
  EXPECT_THAT(seen(leaking).verdict.finding.because,
              HasSubstr("its memory ends at 10.0 GiB, by dmem.max of /pod, of which 2 processes use 6.5 GiB"));
  end_process(3600, 2);
  for (double t = 3600; t < 3700; t += kStep_s) {
    const std::uint64_t used = kGiB + kRate * static_cast<std::uint64_t>(t);
    tick(t, used, {{leaking, used}});
  }
  expect_end(3700, 10.0 * kGiB);
}

TEST_F(WallsTest, WhatSeveralFillTogetherEndsSooner) {
  wall(0, 1, "dmem.max of /pod", 16 * kGiB);
  wall(0, 2, "dmem.max of /pod", 16 * kGiB);
  for (double t = 0; t < 3600; t += kStep_s) {
    const std::uint64_t used = kGiB + kRate * static_cast<std::uint64_t>(t);
    tick(t, 2 * used, {{leaking, used}, {other, used}});
  }
  const double left = 16.0 * kGiB - 2 * (kGiB + kRate * (3600 - kStep_s));
  for (const SeriesId id : {leaking, other}) {
    const Finding finding = seen(id).verdict.finding;
    ASSERT_TRUE(finding.oom_in_s) << finding.because;
    EXPECT_NEAR(finding.oom_in_s->mid, left / (2 * kRate), 0.05 * left / (2 * kRate)) << finding.because;
    EXPECT_THAT(finding.because, HasSubstr("of which 2 processes use 9.0 GiB and grow by 120.0 MiB/min together"));
  }
}

TEST_F(WallsTest, TheGpuEndsItWhereThatIsNearer) {
  wall(0, 1, "dmem.max of /pod", 23 * kGiB);
  grow(0, 3600);
  expect_end(3600, 22.0 * kGiB);
  EXPECT_THAT(seen(leaking).verdict.finding.because, Not(HasSubstr("its memory ends at")));
}

TEST_F(WallsTest, AProcessOfTheSamePidIsAnother) {
  wall(0, 1, "dmem.max of /pod", 8 * kGiB);
  grow(0, 600);
  end_process(600, 1);
  ProcessInfo next;
  next.pid = 1;
  next.start_ticks = 5000;
  next.command = "python train.py";
  catalog.describe(next);
  leaking = catalog.intern({Metric::process_used, "GPU-a", 1, 5000});
  grow(610, 4200);
  expect_end(4200, 22.0 * kGiB);
}

}  // namespace
}  // namespace vramtrack
