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
  /// "42=8589934592" for each wall, and the notes.
  std::vector<std::string> poll(double t) {
    Batch batch;
    for (const SeriesId id : series) batch.samples.push_back({at(t), id, 1000});
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
  std::optional<WallRounds> rounds;
};

TEST_F(WallRoundsTest, EachProcessIsToldOfAndPeopleOnce) {
  EXPECT_THAT(poll(0), IsEmpty());
  limit("8589934592");
  EXPECT_THAT(poll(5), IsEmpty()) << "not due";
  EXPECT_THAT(poll(10), ElementsAre("42=8589934592", "GPU 0: memory of pid 42 ends at 8.0 GiB: dmem.max of /pod",
                                    "43=8589934592"));
  EXPECT_THAT(poll(20), IsEmpty()) << "nothing has changed";
}

TEST_F(WallRoundsTest, AWallThatMovesIsAnEvent) {
  limit("8589934592");
  poll(0);
  limit("4294967296");
  EXPECT_THAT(poll(10), ElementsAre("42=4294967296",
                                    "GPU 0: memory of pid 42 now ends at 4.0 GiB instead of 8.0 GiB: dmem.max of /pod",
                                    "43=4294967296"));
  limit("max");
  EXPECT_THAT(poll(20), ElementsAre("42=0", "GPU 0: the limit of 4.0 GiB was lifted: dmem.max of /pod", "43=0"));
  EXPECT_THAT(poll(30), IsEmpty());
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
