#include "core/series.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace vramtrack {
namespace {

TEST(Catalog, AReusedPidIsAnotherSeries) {
  Catalog catalog;
  const SeriesId first = catalog.intern({Metric::process_used, "GPU-a", 42, 1000});
  const SeriesId second = catalog.intern({Metric::process_used, "GPU-a", 42, 2000});
  EXPECT_NE(first, second);
  EXPECT_EQ(first, catalog.intern({Metric::process_used, "GPU-a", 42, 1000}));
  EXPECT_EQ(catalog.key(second).pid_start_ticks, 2000U);
  EXPECT_FALSE(catalog.find({Metric::device_used, "GPU-a", 0, 0}));
}

TEST(Catalog, EmptyFieldsNeverEraseWhatIsKnown) {
  Catalog catalog;
  EXPECT_TRUE(catalog.describe(DeviceInfo{.id = "GPU-a", .index = 0, .name = "H200", .capacity_bytes = 141}));
  EXPECT_FALSE(catalog.describe(DeviceInfo{.id = "GPU-a"}));
  EXPECT_TRUE(catalog.describe(DeviceInfo{.id = "GPU-a", .pci_bus_id = "0000:01:00.0"}));
  ASSERT_NE(catalog.device("GPU-a"), nullptr);
  EXPECT_EQ(catalog.device("GPU-a")->name, "H200");
  EXPECT_EQ(catalog.device("GPU-a")->capacity_bytes, 141U);
  EXPECT_EQ(catalog.device("GPU-b"), nullptr);
}

TEST(Catalog, APidOfTwoHostsIsTwoSeriesAndTwoProcesses) {
  Catalog catalog;
  const SeriesKey here{Metric::process_used, "0", 4242, 1000};
  SeriesKey there = here;
  there.host = "node7";
  const SeriesId of_here = catalog.intern(here);
  const SeriesId of_there = catalog.intern(there);
  EXPECT_NE(of_here, of_there);
  EXPECT_EQ(catalog.find(here), of_here);
  EXPECT_EQ(catalog.find(there), of_there);
  EXPECT_TRUE(catalog.describe(ProcessInfo{.pid = 4242, .start_ticks = 1000, .command = "train"}));
  EXPECT_EQ(catalog.process(process_key(there)), nullptr);
  EXPECT_TRUE(catalog.describe(ProcessInfo{.pid = 4242, .start_ticks = 1000, .command = "serve", .host = "node7"}));
  EXPECT_TRUE(catalog.describe(DeviceInfo{.id = "0", .name = "A10"}));
  EXPECT_TRUE(catalog.describe(DeviceInfo{.id = "0", .name = "H200", .host = "node7"}));
  EXPECT_EQ(catalog.process(process_key(here))->command, "train");
  EXPECT_EQ(catalog.process(4242, 1000)->command, "train") << "without a host: this machine's";
  EXPECT_EQ(catalog.process(process_key(there))->command, "serve");
  EXPECT_EQ(catalog.device(device_key(here))->name, "A10");
  EXPECT_EQ(catalog.device(device_key(there))->name, "H200");
  catalog.retire(of_here);
  EXPECT_EQ(catalog.process(process_key(here)), nullptr);
  EXPECT_EQ(catalog.process(process_key(there))->command, "serve");
  EXPECT_TRUE(catalog.holds(of_there));
}

TEST(Catalog, OnlyDevicesThatChangedAreVisited) {
  Catalog catalog;
  catalog.describe(DeviceInfo{.id = "GPU-a"});
  catalog.describe(DeviceInfo{.id = "GPU-b"});
  const std::uint64_t before = catalog.revision();
  catalog.intern({Metric::device_used, "GPU-b", 0, 0});
  catalog.describe(DeviceInfo{.id = "GPU-a", .capacity_bytes = 24});
  std::vector<std::string> changed;
  catalog.devices_since(before, [&](const DeviceInfo& device) { changed.push_back(device.id); });
  EXPECT_EQ(changed, std::vector<std::string>{"GPU-a"});
}

std::vector<std::uint32_t> changed_since(const Catalog& catalog, std::uint64_t revision) {
  std::vector<std::uint32_t> pids;
  catalog.processes_since(revision, [&](const ProcessInfo& process) { pids.push_back(process.pid); });
  return pids;
}

TEST(Catalog, ARetiredSeriesIsForgottenAndItsIdNeverComesBack) {
  Catalog catalog;
  const SeriesKey key{Metric::process_used, "GPU-a", 42, 1000};
  const SeriesId first = catalog.intern(key);
  catalog.describe(ProcessInfo{.pid = 42, .start_ticks = 1000, .command = "train"});
  catalog.retire(first);
  EXPECT_EQ(catalog.key(first), SeriesKey{});
  EXPECT_FALSE(catalog.holds(first));
  EXPECT_FALSE(catalog.find(key));
  EXPECT_EQ(catalog.process(42, 1000), nullptr);
  catalog.retire(first);                         // twice
  catalog.retire(static_cast<SeriesId>(12345));  // never assigned

  const SeriesId second = catalog.intern(key);
  EXPECT_NE(first, second);
  EXPECT_EQ(catalog.key(second), key);
  EXPECT_EQ(catalog.process(42, 1000), nullptr);
  catalog.retire(first);  // an old id does not reach its successor
  EXPECT_EQ(catalog.find(key), second);
  EXPECT_EQ(catalog.size(), 2U);
  EXPECT_EQ(catalog.live(), 1U);
}

TEST(Catalog, AProcessIsKeptUntilItsLastSeriesIsRetired) {
  Catalog catalog;
  const SeriesId on_a = catalog.intern({Metric::process_used, "GPU-a", 42, 1000});
  const SeriesId on_b = catalog.intern({Metric::process_used, "GPU-b", 42, 1000});
  const SeriesId reused = catalog.intern({Metric::process_used, "GPU-a", 42, 2000});
  for (const std::uint64_t ticks : {1000U, 2000U}) catalog.describe(ProcessInfo{.pid = 42, .start_ticks = ticks});
  catalog.retire(on_a);
  EXPECT_NE(catalog.process(42, 1000), nullptr);
  catalog.retire(on_b);
  EXPECT_EQ(catalog.process(42, 1000), nullptr);
  EXPECT_NE(catalog.process(42, 2000), nullptr);
  EXPECT_EQ(catalog.processes().size(), 1U);
  catalog.retire(reused);
  EXPECT_TRUE(catalog.processes().empty());
}

TEST(Catalog, ProcessesThatComeAndGoLeaveNothing) {
  Catalog catalog;
  const SeriesId device = catalog.intern({Metric::device_used, "GPU-a", 0, 0});
  std::deque<SeriesId> running;
  for (std::uint32_t pid = 1; pid <= 100'000; ++pid) {
    running.push_back(catalog.intern({Metric::process_used, "GPU-a", pid, 7}));
    catalog.describe(ProcessInfo{.pid = pid, .start_ticks = 7, .command = "train"});
    if (running.size() <= 8) continue;
    catalog.retire(running.front());
    running.pop_front();
  }
  EXPECT_EQ(catalog.size(), 100'001U);
  EXPECT_EQ(catalog.live(), 9U);
  EXPECT_EQ(catalog.processes().size(), 8U);
  EXPECT_EQ(changed_since(catalog, 0).size(), 8U);
  EXPECT_EQ(catalog.key(device).device_id, "GPU-a");
}

TEST(Catalog, TellsWhichProcessesChanged) {
  Catalog catalog;
  for (const std::uint32_t pid : {1U, 2U, 3U}) {
    catalog.intern({Metric::process_used, "GPU-a", pid, 7});
    catalog.describe(ProcessInfo{.pid = pid, .start_ticks = 7});
  }
  EXPECT_EQ(changed_since(catalog, 0), (std::vector<std::uint32_t>{3, 2, 1}));
  const std::uint64_t then = catalog.revision();
  EXPECT_TRUE(changed_since(catalog, then).empty());
  catalog.describe(ProcessInfo{.pid = 1, .start_ticks = 7, .framework = "PyTorch"});
  catalog.describe(ProcessInfo{.pid = 2, .start_ticks = 7});  // nothing new
  EXPECT_EQ(changed_since(catalog, then), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(catalog.processes().front().pid, 1U);
  EXPECT_EQ(catalog.device_revision(), 0U);
  catalog.describe(DeviceInfo{.id = "GPU-a"});
  EXPECT_EQ(catalog.device_revision(), catalog.revision());
}

TEST(Metric, NamesRoundTrip) {
  for (const Metric m : {Metric::device_used, Metric::process_used, Metric::probe_live})
    EXPECT_EQ(parse_metric(to_string(m)), m);
  EXPECT_FALSE(parse_metric("nonsense"));
}

}  // namespace
}  // namespace vramtrack
