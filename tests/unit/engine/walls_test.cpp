// Walls of processes: the forecast ends at the nearest one, and follows it when it moves.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "one_gpu.hpp"
#include "paths.hpp"
#include "report/conclusion.hpp"
#include "report/trend.hpp"
#include "scenario_run.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kStep_s = 10;
constexpr std::uint64_t kRate = kMiB;  // per second

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
  /// Process 1 grows by 1 MiB per second from 1 GiB on, beside a process that holds 2 GiB.
  void grow(double from_s, double to_s) {
    for (double t = from_s; t < to_s; t += kStep_s) {
      const std::uint64_t used = kGiB + kRate * static_cast<std::uint64_t>(t);
      tick(t, used + 2 * kGiB, {{leaking, used}, {other, 2 * kGiB}});
    }
  }
  /// Seconds until process 1 has grown from its memory after `t` to `end_bytes`.
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
  EXPECT_THAT(because, HasSubstr("its memory is limited to 8.0 GiB by CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid 1"));
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
  EXPECT_THAT(seen(leaking).verdict.finding.because, Not(HasSubstr("its memory is limited to")));
}

/// No sample follows the report in a log's last line.
TEST_F(WallsTest, OneThatIsToldLastOfAllEndsTheForecastToo) {
  grow(0, 3600);
  engine->finish();
  wall(3600, 1, "dmem.max of /pod", 7 * kGiB);
  expect_end(3600, 7.0 * kGiB);
  EXPECT_THAT(seen(leaking).verdict.finding.because, HasSubstr("its memory is limited to 7.0 GiB by dmem.max of /pod"));
  const Finding device = seen(device_series).verdict.finding;
  ASSERT_TRUE(device.oom_in_s) << device.because;
  EXPECT_NEAR(device.oom_in_s->mid, left_s(3600, 7.0 * kGiB), 0.05 * left_s(3600, 7.0 * kGiB));
}

/// A limit that an earlier watch saw may have been lifted since, so the next watch reports it again.
TEST_F(WallsTest, TheyEndWithTheWatchThatKnewThem) {
  wall(0, 1, "dmem.max of /pod", 8 * kGiB);
  grow(0, 3600);
  engine->finish();
  Batch over;
  over.events.push_back(Event{.time = at(3600), .kind = Event::Kind::watch_started});
  engine->ingest(over);
  EXPECT_FALSE(seen(leaking).wall);
  expect_end(3600, 22.0 * kGiB);
}

/// For the device and for its processes.
TEST_F(WallsTest, ItFollowsATotalThatTheDriverAdjusts) {
  grow(0, 3600);
  expect_end(3600, 22.0 * kGiB);
  Batch batch;
  batch.events.push_back(Event{.time = at(3600), .kind = Event::Kind::capacity, .device_id = "GPU-a"});
  batch.events.back().capacity_bytes = 16 * kGiB;
  engine->ingest(batch);
  grow(3600, 3700);
  expect_end(3700, 14.0 * kGiB);
  const Finding device = seen(device_series).verdict.finding;
  ASSERT_TRUE(device.oom_in_s) << device.because;
  EXPECT_NEAR(device.oom_in_s->mid, left_s(3700, 14.0 * kGiB), 0.05 * left_s(3700, 14.0 * kGiB));
}

TEST_F(WallsTest, ProcessesThatShareAWallHoldItTogether) {
  wall(0, 1, "dmem.max of /pod", 10 * kGiB);
  wall(0, 2, "dmem.max of /pod", 10 * kGiB);
  grow(0, 3600);
  expect_end(3600, 8.0 * kGiB);
  EXPECT_THAT(seen(leaking).verdict.finding.because,
              HasSubstr("its memory is limited to 10.0 GiB by dmem.max of /pod, of which 2 processes use 6.5 GiB"));
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
    EXPECT_THAT(finding.because, HasSubstr("of which 2 processes use 9.0 GiB and grow at 120.0 MiB/min together"));
  }
}

TEST_F(WallsTest, TheGpuEndsItWhereThatIsNearer) {
  wall(0, 1, "dmem.max of /pod", 23 * kGiB);
  grow(0, 3600);
  expect_end(3600, 22.0 * kGiB);
  EXPECT_THAT(seen(leaking).verdict.finding.because, Not(HasSubstr("its memory is limited to")));
}

/// The memory that a program may need is limited by the nearest wall, too.
TEST_F(WallsTest, WhatFitsEndsAtTheNearestWall) {
  wall(0, 1, "dmem.max of /pod", 10 * kGiB);
  wall(0, 2, "dmem.max of /pod", 10 * kGiB);
  wall(0, 1, "PyTorch's per_process_memory_fraction of pid 1", 9 * kGiB);
  // Process 1 peaked at 8 GiB, holds 2, and may need 6 GiB again: of 10 GiB, 5 are left beside the other's 3.
  tick(0, 11 * kGiB, {{leaking, 8 * kGiB}, {other, 2 * kGiB}});
  tick(10, 6 * kGiB, {{leaking, 2 * kGiB}, {other, 3 * kGiB}});
  engine->finish();
  const Headroom h = seen(leaking).headroom.value();
  EXPECT_EQ(h.more_bytes, 6 * kGiB);
  EXPECT_EQ(h.left_bytes, -static_cast<std::int64_t>(kGiB));
  EXPECT_EQ(h.beside_pid, 2U);
  EXPECT_EQ(seen(device_series).headroom.value().left_bytes, h.left_bytes) << "the device tells of what leaves least";
  for (const SeriesId id : {leaking, device_series})
    EXPECT_THAT(told_of(id).facts, testing::Contains(testing::Field(
                                       &Fact::text, HasSubstr("does not fit beside pid 2, 1.0 GiB short; "
                                                              "its memory is limited to 10.0 GiB by dmem.max of "
                                                              "/pod"))))
        << "series " << index_of(id);
  EXPECT_TRUE(seen(other).headroom.value().fits());
}

/// The report must not claim that the device lasts longer than the process that fills it.
TEST_F(WallsTest, ADeviceEndsWithItsOnlyGrower) {
  wall(0, 1, "dmem.max of /pod", 8 * kGiB);
  bool was_undecided = false;
  for (double t = 0; t < 3600; t += kStep_s) {
    grow(t, t + kStep_s);
    const Finding device = seen(device_series).verdict.finding;
    const Finding process = seen(leaking).verdict.finding;
    if (!grows(device) || !grows(process)) continue;
    const auto end_s = [](const Finding& f) {
      return f.oom_in_s ? f.oom_in_s->mid : f.oom_if_growth_continues_s.value_or(0);
    };
    if (end_s(process) <= 0) continue;
    was_undecided = was_undecided || !device.leak;
    EXPECT_NEAR(end_s(device), end_s(process), 0.01 * end_s(process)) << t << ": " << device.because;
  }
  EXPECT_TRUE(was_undecided);
  EXPECT_TRUE(seen(device_series).verdict.finding.leak);
  EXPECT_THAT(seen(device_series).verdict.finding.because, HasSubstr("limited to 8.0 GiB by dmem.max of /pod"));
}

/// A process that ends at its own wall ends there, however much the others grow.
TEST_F(WallsTest, OthersThatGrowDoNotFillAWallThatIsNotTheirs) {
  wall(0, 1, "dmem.max of /pod", 8 * kGiB);
  for (double t = 0; t < 3600; t += kStep_s) {
    const std::uint64_t used = kGiB + kRate * static_cast<std::uint64_t>(t);
    tick(t, 2 * used, {{leaking, used}, {other, used}});
  }
  expect_end(3600, 8.0 * kGiB);
  const Finding device = seen(device_series).verdict.finding;
  ASSERT_TRUE(device.oom_in_s) << device.because;
  EXPECT_NEAR(device.oom_in_s->mid, left_s(3600, 8.0 * kGiB), 0.05 * left_s(3600, 8.0 * kGiB)) << device.because;
}

/// Charts end where forecasts do.
TEST_F(WallsTest, ChartsEndAtTheWall) {
  wall(0, 1, "dmem.max of /pod", 8 * kGiB);
  grow(0, 3600);
  const SeriesView& process = seen(leaking);
  const auto end = memory_end(*views.back(), process);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->bytes, 8.0 * kGiB);
  EXPECT_EQ(end->wall, "dmem.max of /pod");
  const auto of_device = memory_end(*views.back(), seen(device_series));
  ASSERT_TRUE(of_device);
  EXPECT_EQ(of_device->bytes, 10.0 * kGiB) << "2 GiB are the other's";
  EXPECT_EQ(of_device->wall, "dmem.max of /pod");
  EXPECT_FALSE(memory_end(*views.back(), seen(other)));
}

/// A card with three walls, the nearest of which moves: tests/scenarios/leak_three_walls.toml.
TEST(WallsOfAScenario, TheForecastIsWithinFivePercentBeforeAndAfterTheMove) {
  auto scenario = sim::load_scenario(tests_dir() + "/scenarios/leak_three_walls.toml");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto look = [&](double minutes, double end_s, const std::string& name) {
    scenario->duration_s = minutes * 60;
    const auto run = play(*scenario);
    for (const SeriesView& s : run->view->series) {
      if (s.key.pid != 4242 && s.key.metric != Metric::device_used) continue;
      const auto& oom_in_s = s.verdict.finding.oom_in_s;
      ASSERT_TRUE(oom_in_s) << s.verdict.finding.because;
      const double left_s = end_s - scenario->duration_s;
      EXPECT_NEAR(oom_in_s->mid, left_s, 0.05 * left_s) << minutes << " min: " << s.verdict.finding.because;
      EXPECT_THAT(s.verdict.finding.because, HasSubstr("by " + name));
      testing::Test::RecordProperty(fmt::format("error_{}_{}_percent", s.key.pid, minutes),
                                    fmt::format("{:.2f}", 100 * (oom_in_s->mid / left_s - 1)));
    }
  };
  look(70, 7168, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid 4242");
  look(90, 6144, "dmem.max of /pod");
}

/// After the end, every report names the wall as it was then, not as it was when the alert was raised.
TEST(WallsOfAScenario, WhatGrowsBeyondItFailsAndItsEndNamesIt) {
  auto scenario = sim::load_scenario(tests_dir() + "/scenarios/leak_three_walls.toml");
  ASSERT_TRUE(scenario) << scenario.error().message;
  scenario->duration_s = 6300;
  const auto run = play(*scenario);
  for (const SeriesView& s : run->view->series) {
    if (s.key.pid != 4242 && s.key.metric != Metric::device_used) continue;
    EXPECT_THAT(conclusion_words(*run->view, s).end, HasSubstr("ended then; its limit was dmem.max of /pod"));
    const std::string because = Conclusion(*run->view, s).finding().because;
    EXPECT_THAT(because, HasSubstr("limited to 9.0 GiB by dmem.max of /pod, of which 2 processes use 9.0 GiB"));
    EXPECT_THAT(because, Not(HasSubstr("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT")));
    if (s.key.pid == 0) continue;
    ASSERT_TRUE(s.wall);
    EXPECT_EQ(s.wall->name, "dmem.max of /pod");
    EXPECT_EQ(s.wall->bytes, 9 * kGiB);
  }
  for (const SeriesView& s : run->view->series) {
    if (s.key.pid != 4242) continue;
    ASSERT_TRUE(s.verdict.end);
    EXPECT_EQ(s.verdict.end->how, EndKind::out_of_memory);
    EXPECT_NEAR(run->seconds(s.verdict.end->time), 6144, 20);
  }
}

/// For a recording without processes: the device's memory ends with what its program may still allocate.
class WallsOfARecording : public OneGpu {
 protected:
  void grow(double from_s, double to_s) {
    for (double t = from_s; t < to_s; t += kStep_s) {
      Batch batch;
      const std::uint64_t used = kGiB + kRate * static_cast<std::uint64_t>(t);
      batch.samples.push_back({at(t), device_series, used + kGiB});
      if (allocated) batch.samples.push_back({at(t), *allocated, used});
      engine->ingest(batch);
    }
  }
  void wall(double t, std::uint64_t bytes) {
    Batch batch;
    batch.events.push_back(Event{.time = at(t), .kind = Event::Kind::capacity, .device_id = "GPU-a"});
    batch.events.back().text = "PyTorch's per_process_memory_fraction";
    batch.events.back().capacity_bytes = bytes;
    engine->ingest(batch);
  }
  void expect_end(SeriesId id, double t, double allocated_bytes) {
    engine->finish();
    const Finding finding = seen(id).verdict.finding;
    const double left_s = (allocated_bytes - static_cast<double>(kGiB)) / static_cast<double>(kRate) - (t - kStep_s);
    // Without a list of processes, a straight rise stays suspected for longer.
    const std::optional<double> forecast_s =
        finding.oom_in_s ? finding.oom_in_s->mid : finding.oom_if_growth_continues_s;
    ASSERT_TRUE(forecast_s) << finding.because;
    EXPECT_NEAR(*forecast_s, left_s, 0.05 * left_s) << finding.because;
  }
  std::optional<SeriesId> allocated;
};

TEST_F(WallsOfARecording, TheDeviceEndsWithWhatTheAllocatorMayStillTake) {
  allocated = catalog.intern({Metric::allocator_allocated, "GPU-a", 0, 0});
  start();
  grow(0, 3600);
  wall(3600, 8 * kGiB);
  grow(3600, 3700);
  expect_end(*allocated, 3700, 8.0 * kGiB);
  expect_end(device_series, 3700, 8.0 * kGiB);
  EXPECT_THAT(seen(device_series).verdict.finding.because,
              HasSubstr("its memory is limited to 8.0 GiB by PyTorch's per_process_memory_fraction"));
  EXPECT_EQ(memory_end(*views.back(), seen(device_series))->bytes, 9.0 * kGiB);
}

/// A program's last message is that its memory ran out: all its allocator's series end with what it has allocated.
TEST_F(WallsOfARecording, AllSeriesOfTheAllocatorEndWithALastMessage) {
  allocated = catalog.intern({Metric::allocator_allocated, "GPU-a", 0, 0});
  const SeriesId reserved = catalog.intern({Metric::allocator_reserved, "GPU-a", 0, 0});
  start();
  Timestamp last{};
  for (double t = 0; t < 3600; t += kStep_s) {
    Batch batch;
    const std::uint64_t used = kGiB + kRate * static_cast<std::uint64_t>(t);
    batch.samples.push_back({at(t), *allocated, used});
    batch.samples.push_back({at(t), reserved, used + kGiB / 4});
    engine->ingest(batch);
    last = at(t);
  }
  Batch batch;
  batch.events.push_back(Event{.time = last + Duration{1}, .kind = Event::Kind::out_of_memory, .device_id = "GPU-a"});
  engine->ingest(batch);
  engine->end_of_recording();
  for (const SeriesId id : {*allocated, reserved}) {
    const Verdict& verdict = seen(id).verdict;
    ASSERT_TRUE(verdict.end) << verdict.finding.because;
    EXPECT_EQ(verdict.end->how, EndKind::out_of_memory);
    EXPECT_FALSE(verdict.finding.oom_in_s);
  }
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
