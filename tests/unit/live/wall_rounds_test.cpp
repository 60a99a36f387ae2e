// WallRounds: fixture trees in, events out.
#include "live/wall_rounds.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

Timestamp at(double s) {
  return Timestamp{from_seconds(s)};
}

class WallRoundsTest : public testing::Test {
 protected:
  WallRoundsTest() {
    DeviceInfo gpu;
    gpu.id = "GPU-a";
    gpu.index = 0;
    gpu.pci_bus_id = "00000000:3A:00.0";
    catalog.describe(gpu);
    for (const std::uint32_t pid : {42U, 43U}) {
      ProcessInfo process;
      process.pid = pid;
      process.start_ticks = 7;
      process.cgroup = "/pod";
      catalog.describe(process);
      series.push_back(catalog.intern({Metric::process_used, "GPU-a", pid, 7}));
    }
    sources.proc_root = folder.file("proc");
    sources.sys_root = folder.file("sys");
    rounds.emplace(sources);
  }
  void limit(const std::string& words) const {
    std::filesystem::create_directories(folder.file("sys/fs/cgroup/pod"));
    std::ofstream(folder.file("sys/fs/cgroup/pod/dmem.max")) << "drm/0000:3a:00.0/vram0 " << words << '\n';
  }
  void total(std::uint64_t bytes) {
    DeviceInfo gpu;
    gpu.id = "GPU-a";
    gpu.capacity_bytes = bytes;
    catalog.describe(gpu);
  }
  /// Returns "42=8589934592" for each wall (0: of the device), and the messages.
  std::vector<std::string> poll(double t) {
    Batch batch;
    if (device_used) batch.samples.push_back({at(t), *device_used, 1000});
    for (const SeriesId id : series) batch.samples.push_back({at(t), id, 1000});
    if (told)
      batch.events.push_back(Event{.time = at(t),
                                   .kind = Event::Kind::capacity,
                                   .device_id = "GPU-a",
                                   .pid = 42,
                                   .pid_start_ticks = 7,
                                   .text = told->first,
                                   .capacity_bytes = told->second});
    rounds->add(catalog, at(t), batch);
    std::vector<std::string> out;
    for (const Event& event : batch.events)
      out.push_back(event.kind == Event::Kind::note
                        ? event.text
                        : std::to_string(event.pid) + "=" + std::to_string(event.capacity_bytes));
    return out;
  }
  TempFolder folder;
  Catalog catalog;
  SourcesConfig sources;
  std::vector<SeriesId> series;
  std::optional<SeriesId> device_used;
  std::optional<std::pair<std::string, std::uint64_t>> told;  ///< by a source, for process 42
  std::optional<WallRounds> rounds;
};

TEST_F(WallRoundsTest, EachProcessIsToldOfAndPeopleOnce) {
  EXPECT_THAT(poll(0), IsEmpty());
  limit("8589934592");
  EXPECT_THAT(poll(5), IsEmpty()) << "not due";
  EXPECT_THAT(poll(10), ElementsAre("42=8589934592", "43=8589934592",
                                    "GPU 0: the memory of pid 42 is limited to 8.0 GiB: dmem.max of /pod"));
  EXPECT_THAT(poll(20), IsEmpty()) << "nothing has changed";
}

TEST_F(WallRoundsTest, AWallThatMovesIsAnEvent) {
  limit("8589934592");
  poll(0);
  limit("4294967296");
  EXPECT_THAT(
      poll(10),
      ElementsAre("42=4294967296", "43=4294967296",
                  "GPU 0: the memory of pid 42 is now limited to 4.0 GiB instead of 8.0 GiB: dmem.max of /pod"));
  limit("max");
  EXPECT_THAT(
      poll(20),
      ElementsAre("42=0", "43=0",
                  "GPU 0: the limit of 4.0 GiB was lifted: dmem.max of /pod; only the GPU's capacity limits it now"));
  EXPECT_THAT(poll(30), IsEmpty());
}

/// Memory ends only at the nearest wall.
TEST_F(WallRoundsTest, TheNearestIsTheEndAndTheOthersAreLimits) {
  series.pop_back();
  limit("17179869184");
  told.emplace("NVIDIA's memory limit of /pod", 8 * kGiB);
  EXPECT_THAT(poll(0), ElementsAre("42=8589934592", "42=17179869184",
                                   "GPU 0: the memory of pid 42 is limited to 8.0 GiB: NVIDIA's memory limit of /pod",
                                   "GPU 0: pid 42 has a limit of 16.0 GiB: dmem.max of /pod"));
  told.reset();
  EXPECT_THAT(poll(10), IsEmpty()) << "what a source has told stands";
  limit("12884901888");
  EXPECT_THAT(poll(20), ElementsAre("42=12884901888",
                                    "GPU 0: the limit of pid 42 is now 12.0 GiB instead of 16.0 GiB: dmem.max of /pod; "
                                    "its memory is limited to 8.0 GiB: NVIDIA's memory limit of /pod"));
  told.emplace("NVIDIA's memory limit of /pod", 0);
  EXPECT_THAT(poll(22), ElementsAre("42=0",
                                    "GPU 0: the limit of 8.0 GiB was lifted: NVIDIA's memory limit of /pod; its memory "
                                    "is limited to 12.0 GiB: dmem.max of /pod"))
      << "a source tells at once";
}

TEST_F(WallRoundsTest, ALimitBeyondTheGpuIsNoEnd) {
  total(4 * kGiB);
  device_used = catalog.intern({Metric::device_used, "GPU-a", 0, 0});
  series.pop_back();
  limit("8589934592");
  EXPECT_THAT(
      poll(0),
      ElementsAre("0=4294967296", "42=8589934592",
                  "GPU 0: pid 42 has a limit of 8.0 GiB: dmem.max of /pod; the GPU's capacity is the closer limit"));
}

TEST_F(WallRoundsTest, ATotalThatMovesIsAnEventAtOnce) {
  total(80 * kGiB);
  EXPECT_THAT(poll(0), ElementsAre("0=85899345920")) << "a replay begins with it";
  EXPECT_THAT(poll(1), IsEmpty());
  total(60 * kGiB);
  EXPECT_THAT(poll(2), ElementsAre("0=64424509440",
                                   "GPU 0: its memory is now limited to 60.0 GiB instead of 80.0 GiB: the driver has "
                                   "adjusted the total"));
  EXPECT_THAT(poll(3), IsEmpty());
}

/// The more memory others hold below a wall, the nearer it is.
TEST(NearestWall, CountsWhatTheOthersHold) {
  const std::vector<Walled> all = {{2e9, {{"GPU-a", 16'000'000'000, "shared"}, {"GPU-a", 8'000'000'000, "own"}}},
                                   {13e9, {{"GPU-a", 16'000'000'000, "shared"}}}};
  EXPECT_EQ(used_of(all, "shared"), 15e9);
  ASSERT_NE(nearest_wall(all[0], all), nullptr);
  EXPECT_EQ(nearest_wall(all[0], all)->name, "shared") << "1 GB is left of it, and 6 of its own";
  EXPECT_EQ(nearest_wall({2e9, {}}, all), nullptr);
}

TEST_F(WallRoundsTest, AClockThatIsSetBackDelaysNothing) {
  poll(1000);
  limit("8589934592");
  EXPECT_FALSE(poll(10).empty());
}

TEST_F(WallRoundsTest, ANewProcessBehindAKnownWallIsToldOfWithoutANote) {
  limit("8589934592");
  const SeriesId late = series.back();
  series.pop_back();
  poll(0);
  series.push_back(late);
  EXPECT_THAT(poll(10), ElementsAre("43=8589934592"));
}

}  // namespace
}  // namespace vramtrack
