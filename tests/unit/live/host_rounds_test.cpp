// HostRounds: fixture trees in, samples and events out.
#include "live/host_rounds.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

Timestamp at(double s) {
  return Timestamp{from_seconds(s)};
}

class HostRoundsTest : public testing::Test {
 protected:
  HostRoundsTest() {
    DeviceInfo gpu;
    gpu.id = "GPU-a";
    gpu.index = 0;
    catalog.describe(gpu);
    ProcessInfo process;
    process.pid = 42;
    process.start_ticks = 7;
    process.command = "python serve.py";
    process.cgroup = "/pod";
    catalog.describe(process);
    series = catalog.intern({Metric::process_used, "GPU-a", 42, 7});
    sources.proc_root = folder.file("proc");
    sources.sys_root = folder.file("sys");
    write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nSwapFree: 0 kB\n");
    write("dev/kmsg", "");
    holds(1, 3);
    limit("max");
    killed(0, 0);
    rounds.emplace(StallConfig{}, sources);
  }
  void write(const std::string& path, const std::string& text, bool append = false) const {
    std::filesystem::create_directories(std::filesystem::path(folder.file(path)).parent_path());
    std::ofstream(folder.file(path), append ? std::ios::app : std::ios::trunc) << text;
  }
  void holds(std::uint64_t anonymous_gib, std::uint64_t resident_gib) const {
    write("proc/42/status", "VmPin:\t0 kB\nVmRSS:\t" + std::to_string(resident_gib << 20U) + " kB\nRssAnon:\t" +
                                std::to_string(anonymous_gib << 20U) + " kB\n");
  }
  void limit(const std::string& bytes) const {
    write("sys/fs/cgroup/pod/memory.max", bytes + "\n");
    write("sys/fs/cgroup/pod/memory.current", std::to_string(2 * kGiB) + "\n");
  }
  void killed(int limits, int kills) const {
    write("sys/fs/cgroup/pod/memory.events",
          "oom " + std::to_string(limits) + "\noom_kill " + std::to_string(kills) + "\n");
  }
  Batch poll(double t, std::uint64_t gpu_bytes = kGiB, std::vector<Event> events = {}) {
    Batch batch;
    batch.samples.push_back({at(t), series, gpu_bytes});
    batch.events = std::move(events);
    rounds->add(catalog, at(t), batch);
    return batch;
  }
  static Event ended(double t) {
    Event event;
    event.time = at(t);
    event.kind = Event::Kind::process_ended;
    event.pid = 42;
    event.pid_start_ticks = 7;
    return event;
  }
  std::map<Metric, std::uint64_t> host(const Batch& batch) const {
    std::map<Metric, std::uint64_t> out;
    for (const Sample& sample : batch.samples)
      if (const SeriesKey& key = catalog.key(sample.series); is_of_host(key.metric)) {
        EXPECT_EQ(key.pid, 42U);
        EXPECT_EQ(key.device_id, "GPU-a");
        out[key.metric] = sample.bytes;
      }
    return out;
  }
  static std::vector<std::string> texts(const Batch& batch, Event::Kind kind) {
    std::vector<std::string> out;
    for (const Event& event : batch.events)
      if (event.kind == kind) out.push_back(event.text);
    return out;
  }
  TempFolder folder;
  Catalog catalog;
  SourcesConfig sources;
  SeriesId series{};
  std::optional<HostRounds> rounds;
};

TEST_F(HostRoundsTest, EveryTenSecondsWhatAProcessHoldsAndHowMuchIsLeft) {
  EXPECT_THAT(host(poll(0)),
              UnorderedElementsAre(std::pair(Metric::host_anonymous, kGiB), std::pair(Metric::host_resident, 3 * kGiB),
                                   std::pair(Metric::host_pinned, std::uint64_t{0}),
                                   std::pair(Metric::host_available, 32 * kGiB)));
  holds(5, 6);
  EXPECT_THAT(host(poll(5)), IsEmpty());
  EXPECT_EQ(host(poll(10))[Metric::host_anonymous], 5 * kGiB);
}

/// An APU may map more memory than the host has left.
TEST_F(HostRoundsTest, WhatADeviceThatSharesItCanStillGetOfTheHostsMemory) {
  DeviceInfo apu;
  apu.id = "0000:c5:00.0";
  apu.shares_host_memory = true;
  catalog.describe(apu);
  const Batch batch = poll(0);
  const auto left = catalog.find({Metric::host_available, apu.id, 0, 0});
  ASSERT_TRUE(left);
  EXPECT_EQ(batch.samples.at(1).series, *left);
  EXPECT_EQ(batch.samples.at(1).bytes, 32 * kGiB);
}

TEST_F(HostRoundsTest, ALimitIsToldWhenItIsNewAndWhenItMoves) {
  EXPECT_THAT(texts(poll(0), Event::Kind::capacity), ElementsAre("the machine's memory"));
  EXPECT_THAT(texts(poll(10), Event::Kind::capacity), IsEmpty());
  limit(std::to_string(16 * kGiB));
  const Batch batch = poll(20);
  EXPECT_THAT(texts(batch, Event::Kind::capacity), ElementsAre("memory.max of /pod"));
  EXPECT_EQ(batch.events.front().device_id, kHostMemory);
  EXPECT_EQ(batch.events.front().capacity_bytes, 16 * kGiB);
  EXPECT_EQ(host(batch).at(Metric::host_available), 14 * kGiB);
}

TEST_F(HostRoundsTest, AProcessThatHoldsLittleOfAGpuIsNotFollowed) {
  EXPECT_THAT(host(poll(0, 100 << 20U)), IsEmpty());
  EXPECT_THAT(host(poll(10, kGiB)), testing::SizeIs(4));
  EXPECT_THAT(host(poll(20, 100 << 20U)), testing::SizeIs(4)) << "once it is, it stays so";
}

TEST_F(HostRoundsTest, TheCountersOfItsCgroupTellThatTheKernelEndedIt) {
  poll(0);
  limit(std::to_string(2 * kGiB));
  killed(1, 1);
  const Batch batch = poll(3, kGiB, {ended(3)});
  EXPECT_TRUE(batch.events.front().killed_by_host);
  EXPECT_THAT(
      texts(batch, Event::Kind::host_out_of_memory),
      ElementsAre("the kernel ended pid 42 (python serve.py): the memory of cgroup /pod ran out; it held 1.0 GiB "
                  "of GPU 0 and 1.0 GiB of the host"));
  EXPECT_EQ(rounds->kills(), (HostRounds::Kills{{{"cgroup", true}, 1}}));
}

TEST_F(HostRoundsTest, AnOrdinaryEndIsNone) {
  poll(0);
  const Batch batch = poll(3, kGiB, {ended(3)});
  EXPECT_FALSE(batch.events.front().killed_by_host);
  EXPECT_THAT(texts(batch, Event::Kind::host_out_of_memory), IsEmpty());
}

TEST_F(HostRoundsTest, TheKernelsLogTellsItOnceAndAlsoOfOthers) {
  poll(0);
  write("dev/kmsg", "3,1,1,-;Out of memory: Killed process 42 (python) total-vm:9kB\n", true);
  Batch batch = poll(3);
  EXPECT_THAT(texts(batch, Event::Kind::host_out_of_memory),
              ElementsAre("the kernel ended pid 42 (python serve.py): the machine's memory ran out; it held 1.0 GiB of "
                          "GPU 0 and 1.0 GiB of the host"));
  killed(0, 1);
  batch = poll(6, kGiB, {ended(6)});
  EXPECT_TRUE(batch.events.front().killed_by_host);
  EXPECT_THAT(texts(batch, Event::Kind::host_out_of_memory), IsEmpty());
  write("dev/kmsg", "3,2,1,-;Out of memory: Killed process 99 (cc1plus) total-vm:9kB\n", true);
  batch = poll(9);
  EXPECT_THAT(texts(batch, Event::Kind::host_out_of_memory),
              ElementsAre("the kernel ended pid 99 (cc1plus): the machine's memory ran out; it held no GPU memory"));
  EXPECT_EQ(rounds->kills(), (HostRounds::Kills{{{"machine", true}, 1}, {{"machine", false}, 1}}));
}

}  // namespace
}  // namespace vramtrack
