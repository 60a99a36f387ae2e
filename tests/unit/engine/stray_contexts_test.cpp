// Stray contexts: small, constant, and never at work on that GPU.
#include <gmock/gmock.h>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StrayContextsTest : public testing::Test {
 protected:
  StrayContextsTest() {
    for (int i = 0; i < 2; ++i) {
      DeviceInfo device;
      device.id = "GPU-" + std::to_string(i);
      device.index = i;
      device.capacity_bytes = 80 * kGiB;
      catalog.describe(device);
    }
    for (const std::uint32_t pid : {10U, 11U}) {
      ProcessInfo info;
      info.pid = pid;
      info.start_ticks = 1;
      info.command = "python train.py";
      catalog.describe(info);
    }
    engine = std::make_unique<Engine>(Config{}, catalog);
  }
  SeriesId on(int gpu, std::uint32_t pid) {
    return catalog.intern({Metric::process_used, "GPU-" + std::to_string(gpu), pid, 1});
  }
  /// Feeds these readings for more than a minute; the series in `busy` run something.
  void run(const std::vector<std::pair<SeriesId, std::uint64_t>>& holds, const std::vector<SeriesId>& busy,
           std::uint64_t grows = 0) {
    for (double t = 0; t < 100; t += 5) {
      Batch batch;
      for (const auto& [id, bytes] : holds)
        batch.samples.push_back({at(t), id, bytes + grows * static_cast<std::uint64_t>(t)});
      engine->ingest(batch);
      Batch loads;
      for (const SeriesId id : busy) {
        ProcessReading reading{at(t), id, {}};
        reading.load.gpu_ratio = 0.9;
        loads.loads.push_back(reading);
      }
      engine->ingest(loads);
    }
  }
  [[nodiscard]] std::vector<std::string> told() const { return engine->view()->warnings; }

  Catalog catalog;
  std::unique_ptr<Engine> engine;
};

TEST_F(StrayContextsTest, RanksThatKeepAContextOnGpu0) {
  run({{on(0, 10), 900 * kMiB}, {on(0, 11), 900 * kMiB}, {on(1, 10), 30 * kGiB}, {on(1, 11), 30 * kGiB}},
      {on(1, 10), on(1, 11)});
  EXPECT_THAT(told(), ElementsAre("2 processes hold 1.8 GiB on GPU 0 and run nothing there, while they work on another "
                                  "GPU: set the device before the first CUDA call (torch.cuda.set_device(), or "
                                  "CUDA_VISIBLE_DEVICES for each process)"));
  const auto view = engine->view();
  for (const SeriesView& series : view->series) EXPECT_THAT(series.alerts, IsEmpty());
}

/// A recording has the load of processes as samples.
TEST_F(StrayContextsTest, AReplayKnowsWhoWorked) {
  for (double t = 0; t < 100; t += 5) {
    Batch batch;
    batch.samples.push_back({at(t), on(0, 10), 900 * kMiB});
    batch.samples.push_back({at(t), on(1, 10), 30 * kGiB});
    batch.samples.push_back({at(t), catalog.intern({Metric::process_busy, "GPU-1", 10, 1}), 9'000});
    engine->ingest(batch);
  }
  EXPECT_THAT(told(), testing::SizeIs(1));
}

TEST_F(StrayContextsTest, AProcessThatWorksOnBothIsNone) {
  run({{on(0, 10), 900 * kMiB}, {on(1, 10), 30 * kGiB}}, {on(0, 10), on(1, 10)});
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(StrayContextsTest, NothingIsSaidWhereTheDriverDoesNotTellWhoWorks) {
  run({{on(0, 10), 900 * kMiB}, {on(1, 10), 30 * kGiB}}, {});
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(StrayContextsTest, ALargeOrGrowingShareIsNone) {
  run({{on(0, 10), 4 * kGiB}, {on(1, 10), 30 * kGiB}}, {on(1, 10)});
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(StrayContextsTest, WhatGrowsIsToldAsThat) {
  run({{on(0, 10), 100 * kMiB}, {on(1, 10), 30 * kGiB}}, {on(1, 10)}, kMiB);
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(StrayContextsTest, OneAloneIsOne) {
  run({{on(0, 10), 500 * kMiB}, {on(1, 10), 30 * kGiB}}, {on(1, 10)});
  EXPECT_THAT(told(),
              ElementsAre(HasSubstr("1 process holds 500 MiB on GPU 0 and runs nothing there, while it works")));
}

}  // namespace
}  // namespace vramtrack
