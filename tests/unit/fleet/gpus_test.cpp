#include "fleet/gpus.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/pod_name.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::fleet;

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr const char* kUuid = "GPU-0f3a6c1e-52b1-4c5d-9f10-8a7b6c5d4e3f";

const Mapping& mapping() {
  static const Mapping known = Mapping::read().value();
  return known;
}

Labels dcgm(std::string metric, Labels more = {}) {
  Labels labels = {{"Hostname", "node1"},
                   {"UUID", "GPU-1"},
                   {"__name__", "DCGM_FI_DEV_FB_" + std::move(metric)},
                   {"gpu", "3"},
                   {"modelName", "H100"}};
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

std::vector<Point> points(std::initializer_list<double> values, std::int64_t from_ms = 0) {
  std::vector<Point> out;
  for (const double value : values) out.push_back({from_ms += 1000, value});
  return out;
}

Gpu only_gpu(Gpus& gpus) {
  auto machines = gpus.take();
  EXPECT_EQ(machines.size(), 1U);
  EXPECT_EQ(machines.begin()->second.gpus.size(), 1U);
  return machines.begin()->second.gpus.begin()->second;
}

std::vector<std::uint64_t> mib(const UsedMemory& used) {
  std::vector<std::uint64_t> out;
  for (const Reading& r : used.readings) out.push_back(r.bytes / kMiB);
  return out;
}

TEST(Gpus, AnExportersUnitAndLabels) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED"), points({100, 200}));
  const Gpu gpu = only_gpu(gpus);
  EXPECT_EQ(gpu.device.id, "GPU-1");
  EXPECT_EQ(gpu.device.host, "node1");
  EXPECT_EQ(gpu.device.index, 3);
  EXPECT_EQ(gpu.device.name, "H100");
  EXPECT_EQ(mib(used_memory(gpu)), (std::vector<std::uint64_t>{100, 200}));
}

/// A scrape of each exporter, as in its documents and sources, through a Prometheus.
struct Scrape {
  const char* exporter;
  Labels labels;
  double value;
  const char* host;
  const char* device;
  double mib;
};

TEST(Gpus, EachExporterIsReadAsItIsScraped) {
  const std::vector<Scrape> scrapes = {
      {"Ray",
       {{"GpuDeviceName", "NVIDIA H100"}, {"GpuIndex", "1"}, {"__name__", "ray_node_gram_used"}, {"ip", "10.0.0.7"}},
       40960,
       "10.0.0.7",
       "1",
       40960},
      {"HAMi",
       {{"__name__", "hami_host_gpu_memory_used_bytes"},
        {"device_index", "0"},
        {"device_type", "NVIDIA-A100"},
        {"device_uuid", kUuid},
        {"instance", "10.0.0.7:9394"}},
       1073741824,
       "10.0.0.7",
       kUuid,
       1024},
      {"HAMi",
       {{"__name__", "HostGPUMemoryUsage"},
        {"deviceidx", "0"},
        {"deviceuuid", kUuid},
        {"instance", "10.0.0.7:9394"},
        {"zone", "vGPU"}},
       1073741824,
       "10.0.0.7",
       kUuid,
       1024},
      {"node_exporter (drm)",
       {{"__name__", "node_drm_memory_vram_used_bytes"}, {"card", "card1"}, {"instance", "gpu7:9100"}},
       1073741824,
       "gpu7",
       "card1",
       1024},
      {"XPU Manager 1",
       {{"__name__", "xpum_memory_used_bytes"},
        {"dev_file", "card0"},
        {"dev_name", "Intel(R) Data Center GPU Max 1550"},
        {"node", "gpu7"},
        {"sub_dev", "1"},
        {"uuid", "01000000-0000-0000-0000-000000290000"}},
       1073741824,
       "gpu7",
       "GPU-01000000-0000-0000-0000-000000290000/gi1",
       1024},
      {"Ascend npu-exporter",
       {{"__name__", "npu_chip_info_used_memory"},
        {"id", "0"},
        {"instance", "npu7:8082"},
        {"model_name", "310P3-Ascend-V1"},
        {"vdie_id", "6B5C-1"}},
       1775,
       "npu7",
       "6B5C-1",
       1775},
      {"Telegraf (nvidia_smi)",
       {{"__name__", "nvidia_smi_memory_used"},
        {"host", "gpu7"},
        {"index", "0"},
        {"name", "NVIDIA GeForce RTX 3060"},
        {"uuid", kUuid}},
       2048,
       "gpu7",
       kUuid,
       2048},
      {"nvidia_gpu_prometheus_exporter",
       {{"__name__", "nvidia_gpu_memory_used_bytes"},
        {"instance", "gpu7:9445"},
        {"minor_number", "0"},
        {"name", "Tesla V100"},
        {"uuid", kUuid}},
       1073741824,
       "gpu7",
       kUuid,
       1024},
      {"cAdvisor",
       {{"__name__", "container_accelerator_memory_used_bytes"},
        {"acc_id", kUuid},
        {"container", "trainer"},
        {"instance", "gpu7:10250"},
        {"make", "nvidia"},
        {"model", "Tesla V100"},
        {"namespace", "research"},
        {"pod", "trainer-0"}},
       1073741824,
       "gpu7",
       kUuid,
       1024}};
  for (const Scrape& scrape : scrapes) {
    const std::string metric(value_of(scrape.labels, "__name__"));
    const auto meaning = mapping().find(metric);
    ASSERT_TRUE(meaning) << metric;
    EXPECT_EQ(meaning->exporter->name, scrape.exporter) << metric;
    Roster roster;
    Gpus gpus(mapping(), roster);
    gpus.add(scrape.labels, points({scrape.value}));
    const Gpu gpu = only_gpu(gpus);
    EXPECT_EQ(gpu.device.host, scrape.host) << metric;
    EXPECT_EQ(gpu.device.id, scrape.device) << metric;
    EXPECT_EQ(used_memory(gpu).readings.at(0).bytes, static_cast<std::uint64_t>(scrape.mib * kMiB)) << metric;
  }
}

TEST(Gpus, ASeriesOfNoPodBesideThoseOfPodsIsTheWholeGpu) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED"), points({100, 150, 200}));
  gpus.add(dcgm("USED", {{"pod", "a"}}), points({10, 10, 10}));
  gpus.add(dcgm("USED", {{"pod", "b"}}), points({10, 50, 90}));
  const UsedMemory used = used_memory(only_gpu(gpus));
  EXPECT_FALSE(used.is_shared);
  EXPECT_EQ(mib(used), (std::vector<std::uint64_t>{100, 150, 200})) << "dcgm-exporter with the memory of each pod";
}

TEST(Gpus, HowBusyAGpuIsIsToldOnceForAllItsUsers) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  const auto util = [](const char* pod) {
    return Labels{{"Hostname", "node1"}, {"UUID", "GPU-1"}, {"__name__", "DCGM_FI_DEV_GPU_UTIL"}, {"pod", pod}};
  };
  gpus.add(dcgm("USED"), points({100, 200}));
  gpus.add(util("b"), points({50, 60}, 1000));
  gpus.add(util("a"), points({40, 50, std::nan("")}));
  EXPECT_EQ(gpus.samples(), 2U) << "of memory";
  EXPECT_EQ(fact_readings(only_gpu(gpus).busy), (std::vector<Reading>{{1000, 4000}, {2000, 5000}, {3000, 6000}}));
}

TEST(Gpus, WhatAGpuReceivesIsKeptBesideItsMemory) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED"), points({100, 200}));
  gpus.add({{"Hostname", "node1"}, {"UUID", "GPU-1"}, {"__name__", "DCGM_FI_PROF_PCIE_RX_BYTES"}},
           points({1e9, 2e9, std::nan("")}));
  EXPECT_EQ(gpus.samples(), 2U) << "of memory";
  EXPECT_EQ(fact_readings(only_gpu(gpus).received),
            (std::vector<Reading>{{1000, 1'000'000'000}, {2000, 2'000'000'000}}));
}

TEST(Gpus, ARatioIsAShareOfOneAndAPercentageOfThatNameIsOne) {
  const auto busy = [](std::initializer_list<double> values, const char* name = "DCGM_FI_DEV_GPU_UTIL_RATIO") {
    Roster roster;
    Gpus gpus(mapping(), roster);
    gpus.add(dcgm("USED_BYTES"), points({100, 200}));
    gpus.add({{"Hostname", "node1"}, {"UUID", "GPU-1"}, {"__name__", name}}, points(values));
    return fact_readings(only_gpu(gpus).busy);
  };
  EXPECT_EQ(busy({0.4, 1}), (std::vector<Reading>{{1000, 4000}, {2000, 10'000}}));
  EXPECT_EQ(busy({40, 1, 0}), (std::vector<Reading>{{1000, 4000}, {2000, 100}, {3000, 0}})) << "DCGM 4.5 and 4.6";
  EXPECT_EQ(busy({0.4, 1}, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), busy({0.4, 1}));
}

TEST(Gpus, WithoutUsedMemoryItIsWhatIsNotFree) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("FREE_BYTES"), points({700.0 * kMiB, 650.0 * kMiB}));
  gpus.add_capacity(dcgm("CAPACITY_BYTES"), points({1000.0 * kMiB}));
  gpus.add_capacity(dcgm("RESERVED_BYTES"), points({50.0 * kMiB}));
  const Gpu gpu = only_gpu(gpus);
  EXPECT_EQ(mib(used_memory(gpu)), (std::vector<std::uint64_t>{250, 300}));
  EXPECT_EQ(gpu.capacity_bytes, 1000 * kMiB);

  gpus.add(dcgm("FREE"), points({700}));
  EXPECT_TRUE(only_gpu(gpus).tracks.empty()) << "of what, is not known";
  gpus.add(dcgm("FREE"), points({700}));
  gpus.add(dcgm("USED"), points({200}));
  gpus.add_capacity(dcgm("TOTAL"), points({1000}));
  EXPECT_EQ(mib(used_memory(only_gpu(gpus))), (std::vector<std::uint64_t>{200}));
}

TEST(Gpus, BlankValuesMakeNoSample) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  // DCGM's blank 64-bit and 32-bit values, a stale marker, and no memory at all.
  gpus.add(dcgm("USED"), points({9223372036854775794.0, 2147483632.0, std::nan(""), -1, INFINITY, 0}));
  EXPECT_EQ(gpus.blank_values(), 5U);
  EXPECT_EQ(mib(used_memory(only_gpu(gpus))), (std::vector<std::uint64_t>{0}));
}

TEST(Gpus, PodsThatFollowEachOtherAreOneGpu) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED", {{"pod", "b"}}), points({30, 40}, 10'000));
  gpus.add(dcgm("USED", {{"pod", "a"}}), points({10, 20}));
  const Gpu gpu = only_gpu(gpus);
  EXPECT_EQ(mib(used_memory(gpu)), (std::vector<std::uint64_t>{10, 20, 30, 40}));
  const auto users = tenancies(gpu);
  ASSERT_EQ(users.size(), 2U);
  EXPECT_EQ(users[0].workload.pod, "a");
  EXPECT_EQ(users[1].workload.pod, "b");
  EXPECT_EQ(users[1].first_ms, 11'000);
}

TEST(Gpus, ASeriesMayComeInPieces) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED"), points({1, 2}));
  gpus.add(dcgm("USED"), points({3}, 5000));
  const Gpu gpu = only_gpu(gpus);
  EXPECT_EQ(gpu.tracks.size(), 1U);
  EXPECT_EQ(mib(used_memory(gpu)), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(Gpus, CopiesForEachJobCountOnce) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED", {{"hpc_job", "1"}}), points({10, 20, 30}));
  gpus.add(dcgm("USED", {{"hpc_job", "2"}}), points({10, 20, 30}));
  const UsedMemory used = used_memory(only_gpu(gpus));
  EXPECT_FALSE(used.is_shared);
  EXPECT_EQ(mib(used), (std::vector<std::uint64_t>{10, 20, 30}));
}

TEST(Gpus, SharesOfPodsAreAddedUp) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED", {{"pod", "a"}}), points({10, 10, 10}));
  gpus.add(dcgm("USED", {{"pod", "b"}}), points({10, 50, 90}));
  const UsedMemory used = used_memory(only_gpu(gpus));
  EXPECT_TRUE(used.is_shared);
  EXPECT_EQ(mib(used), (std::vector<std::uint64_t>{20, 60, 100}));
}

TEST(Gpus, TwoNamesOfOneExporterCountOnceAndTheExactOneIsRead) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  const double mib = kMiB;
  // Both names in each scrape, repeated for each pod that shares the GPU: rounded values are not shares.
  for (const char* pod : {"a", "b"}) {
    gpus.add(dcgm("USED", {{"pod", pod}}), points({10, 20, 30}));
    gpus.add(dcgm("USED_BYTES", {{"pod", pod}}), points({10.4 * mib, 20.4 * mib}));
  }
  const UsedMemory used = used_memory(only_gpu(gpus));
  EXPECT_FALSE(used.is_shared);
  ASSERT_EQ(used.readings.size(), 3U);
  EXPECT_EQ(used.readings[0].bytes, std::llround(10.4 * mib));
  EXPECT_EQ(used.readings[2].bytes, 30 * kMiB) << "it has no other value at that time";
}

TEST(Gpus, SharesUnderTwoNamesAreAddedUpOnce) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED", {{"pod", "a"}}), points({10, 10}));
  gpus.add(dcgm("USED", {{"pod", "b"}}), points({10, 50}));
  gpus.add(dcgm("USED_BYTES", {{"pod", "a"}}), points({10.0 * kMiB, 10.0 * kMiB}));
  gpus.add(dcgm("USED_BYTES", {{"pod", "b"}}), points({10.0 * kMiB, 50.0 * kMiB}));
  const UsedMemory used = used_memory(only_gpu(gpus));
  EXPECT_TRUE(used.is_shared);
  EXPECT_EQ(mib(used), (std::vector<std::uint64_t>{20, 60}));
}

TEST(Gpus, AnExporterThatIsUpgradedGoesOnAsOneGpu) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED", {{"DCGM_FI_DRIVER_VERSION", "595.1"}}), points({10, 20}));
  gpus.add({{"hostname", "node1"},
            {"UUID", "GPU-1"},
            {"__name__", "DCGM_FI_DEV_FB_USED_BYTES"},
            {"DCGM_FI_SYSTEM_DRIVER_VERSION", "595.1"}},
           points({30.0 * kMiB, 40.0 * kMiB}, 5000));
  gpus.add_capacity({{"hostname", "node1"}, {"UUID", "GPU-1"}, {"__name__", "DCGM_FI_DEV_FB_CAPACITY_BYTES"}},
                    points({80.0 * kMiB}, 6000));
  const Gpu gpu = only_gpu(gpus);
  EXPECT_EQ(mib(used_memory(gpu)), (std::vector<std::uint64_t>{10, 20, 30, 40}));
  EXPECT_EQ(gpu.capacity_bytes, 80 * kMiB);
  EXPECT_EQ(tenancies(gpu).size(), 1U) << "the same driver, by another label";
}

TEST(Gpus, TheCapacityIsTheSumOfAScrapeWhereThereIsNoTotal) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED"), points({100}));
  EXPECT_EQ(gpus.capacity_missing_at(), 1000);
  gpus.add_capacity(dcgm("USED"), points({100, 150}));
  gpus.add_capacity(dcgm("FREE"), points({800, 749}));
  gpus.add_capacity(dcgm("RESERVED"), points({100, 100}));
  EXPECT_EQ(gpus.capacity_missing_at(), std::nullopt);
  EXPECT_EQ(only_gpu(gpus).capacity_bytes, 1000 * kMiB);
}

TEST(Gpus, TheBetterOfTwoExportersIsRead) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add({{"__name__", "nvidia_smi_memory_used_bytes"},
            {"uuid", "11111111-2222-3333-4444-555555555555"},
            {"instance", "node1:9835"}},
           points({1e9, 1e9}, 500));
  Labels same = dcgm("USED");
  same[1].second = "GPU-11111111-2222-3333-4444-555555555555";
  gpus.add(same, points({1, 2}));
  EXPECT_EQ(mib(used_memory(only_gpu(gpus))), (std::vector<std::uint64_t>{1, 2}));
}

TEST(Gpus, AMigInstanceIsADeviceOfItsOwn) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(dcgm("USED", {{"GPU_I_ID", "2"}}), points({1}));
  gpus.add(dcgm("USED", {{"GPU_I_ID", "7"}}), points({2}));
  const auto machines = gpus.take();
  ASSERT_EQ(machines.at("node1").gpus.size(), 2U);
  EXPECT_EQ(machines.at("node1").gpus.at({"node1", "GPU-1/gi2"}).device.parent_id, "GPU-1");
}

TEST(Gpus, ASeriesThatNamesNoGpuIsCounted) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add({{"__name__", "DCGM_FI_DEV_FB_USED"}}, points({1}));
  gpus.add({{"__name__", "up"}}, points({1}));
  EXPECT_EQ(gpus.unnamed_series(), 1U);
  EXPECT_TRUE(gpus.take().empty());
}

// One GPU under several names of its machine, as Prometheus returns its series.

/// The labels of a DaemonSet of dcgm-exporter as scraped through Prometheus' operator.
Labels scraped(std::string hostname, std::string exporter_pod, Labels more = {}, const char* uuid = kUuid,
               std::string metric = "USED") {
  Labels labels = {{"Hostname", std::move(hostname)},
                   {"UUID", uuid},
                   {"__name__", "DCGM_FI_DEV_FB_" + std::move(metric)},
                   {"container", "nvidia-dcgm-exporter"},
                   {"endpoint", "gpu-metrics"},
                   {"gpu", "3"},
                   {"instance", "10.0.0.7:9400"},
                   {"job", "nvidia-dcgm-exporter"},
                   {"namespace", "gpu-operator"},
                   {"pod", std::move(exporter_pod)},
                   {"service", "nvidia-dcgm-exporter"}};
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

Labels with(Labels labels, const std::string& name, const std::string& value) {
  std::erase_if(labels, [&](const auto& label) { return label.first == name; });
  labels.emplace_back(name, value);
  return labels;
}

TEST(Identity, AUuidIsOneGpuHoweverItIsWritten) {
  const auto id = [](const std::string& uuid) {
    const Roster roster;
    const auto seen = identify({{"Hostname", "n"}, {"UUID", uuid}, {"gpu", "0"}},
                               *mapping().find("DCGM_FI_DEV_FB_USED")->exporter, mapping().workload(), roster);
    return std::pair(seen->device.id, seen->has_uuid);
  };
  const std::string bare = std::string(kUuid).substr(4);
  EXPECT_EQ(id(kUuid), std::pair(std::string(kUuid), true));
  EXPECT_EQ(id(bare), std::pair(std::string(kUuid), true));
  EXPECT_EQ(id("0F3A6C1E-52B1-4C5D-9F10-8A7B6C5D4E3F"), std::pair(std::string(kUuid), true));
  EXPECT_EQ(id("MIG-" + bare), std::pair("MIG-" + bare, true));
  EXPECT_FALSE(id("00000000-0000-0000-0000-000000000000").second) << "what a driver writes that knows none";
  EXPECT_FALSE(id("00000000:1D:00.0").second) << "an address is one on its host";
  EXPECT_FALSE(id("").second);
}

TEST(Gpus, AMachineThatIsRenamedKeepsItsGpusTheirHistoryAndCapacity) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  // NODE_NAME is missing: the host is the exporter's pod, which an upgrade replaces.
  gpus.add(scraped("dcgm-abcde", "dcgm-abcde"), points({1, 2}));
  gpus.add(with(scraped("dcgm-fghij", "dcgm-fghij"), "instance", "10.0.0.9:9400"), points({3, 4}, 300'000));
  EXPECT_EQ(gpus.capacity_missing_at(), 302'000);
  EXPECT_EQ(gpus.capacity_missing_at(302'000 - 150'000), 2000) << "the former host had it, perhaps";
  gpus.add_capacity(scraped("dcgm-abcde", "dcgm-abcde", {}, kUuid, "TOTAL"), points({1000}));
  EXPECT_EQ(gpus.capacity_missing_at(), std::nullopt);
  const auto machines = gpus.take();
  ASSERT_EQ(machines.size(), 1U);
  ASSERT_EQ(machines.begin()->second.gpus.size(), 1U);
  const Gpu& gpu = machines.begin()->second.gpus.begin()->second;
  EXPECT_EQ(mib(used_memory(gpu)), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(gpu.capacity_bytes, 1000 * kMiB);
  EXPECT_EQ(gpu.device.host, "dcgm-fghij") << "the latest name";
  EXPECT_EQ(roster.machine_of("dcgm-fghij"), roster.machine_of("dcgm-abcde"));
}

TEST(Gpus, TheMachinesOwnNameIsPreferredToThatOfAnExportersPodOrAnAddress) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  gpus.add(scraped("node7", "dcgm-abcde"), points({1, 2}));
  gpus.add(scraped("dcgm-fghij", "dcgm-fghij"), points({3, 4}, 300'000));
  gpus.add({{"__name__", "nvidia_smi_memory_used_bytes"},
            {"instance", "10.0.0.7:9835"},
            {"uuid", std::string(kUuid).substr(4)}},
           points({5e6, 6e6}, 600'000));
  const Gpu gpu = only_gpu(gpus);
  EXPECT_EQ(gpu.device.host, "node7");
  EXPECT_EQ(gpu.hosts.size(), 3U);
  EXPECT_TRUE(gpu.has_uuid);
}

TEST(Gpus, AGpuThatMovedHasTheHostWhereItIs) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  constexpr const char* kOther = "GPU-11111111-2222-3333-4444-555555555555";
  gpus.add(scraped("node1", "a"), points({1, 2}));
  gpus.add(scraped("node1", "a", {}, kOther), points({1, 2}));
  gpus.add(scraped("node2", "b"), points({3, 4}, 900'000));
  gpus.add(scraped("node1", "a", {}, kOther), points({3, 4}, 900'000));
  auto machines = gpus.take();
  ASSERT_EQ(machines.size(), 1U) << "they are judged together";
  EXPECT_EQ(machines.begin()->second.gpus.at({"", kUuid}).device.host, "node2");
  EXPECT_EQ(machines.begin()->second.gpus.at({"", kOther}).device.host, "node1");
}

TEST(Gpus, WithoutAUuidAGpuIsOneOnItsHost) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  for (const char* host : {"node1", "node2"})
    gpus.add({{"Hostname", host}, {"__name__", "DCGM_FI_DEV_FB_USED"}, {"gpu", "0"}}, points({1}));
  const auto machines = gpus.take();
  EXPECT_EQ(machines.size(), 2U);
  EXPECT_FALSE(machines.at("node1").gpus.at({"node1", "0"}).has_uuid);
}

TEST(Gpus, OfTwoScrapesOfAnExporterOneIsReadAndTheOtherWhereItIsMissing) {
  constexpr std::int64_t kMinuteMs = 60'000;
  Roster roster;
  Gpus gpus(mapping(), roster);
  const auto every_minute = [](std::int64_t from, std::int64_t to, std::int64_t offset_ms, double mib) {
    std::vector<Point> out;
    for (std::int64_t i = from; i < to; ++i) out.push_back({i * kMinuteMs + offset_ms, mib + static_cast<double>(i)});
    return out;
  };
  // Two replicas of the server, the first one away for ten minutes; and another, manual exporter that counts less.
  gpus.add(scraped("node7", "p", {{"prometheus_replica", "a"}}), every_minute(0, 20, 0, 700));
  gpus.add(scraped("node7", "p", {{"prometheus_replica", "a"}}), every_minute(30, 60, 0, 700));
  gpus.add(scraped("node7", "p", {{"prometheus_replica", "b"}}), every_minute(0, 60, 7000, 700));
  gpus.add(with(scraped("dcgm-hand", "dcgm-hand"), "job", "zz-by-hand"), every_minute(0, 60, 11'000, 100));
  const UsedMemory used = used_memory(only_gpu(gpus));
  ASSERT_GT(used.readings.size(), 50U);
  EXPECT_LT(used.readings.size(), 62U);
  EXPECT_FALSE(used.is_shared);
  for (std::size_t i = 1; i < used.readings.size(); ++i) {
    EXPECT_GT(used.readings[i].time_ms, used.readings[i - 1].time_ms);
    EXPECT_GE(used.readings[i].bytes, used.readings[i - 1].bytes) << "no saw of two exporters";
  }
}

Workload work_of(const Labels& labels, const Roster& roster = {}) {
  return identify(labels, *mapping().find("DCGM_FI_DEV_FB_USED")->exporter, mapping().workload(), roster)->workload;
}

TEST(Identity, TheScrapesPodIsNeverTheWork) {
  // honor_labels: false: the workload's labels were renamed; a GPU without a workload has none to rename.
  const Workload moved =
      work_of(scraped("node7", "dcgm-abcde", {{"exported_pod", "bert-0"}, {"exported_namespace", "ml"}}));
  EXPECT_EQ(moved.group(), "ml/bert");
  EXPECT_EQ(moved.container, "") << "that is the exporter's";
  Roster roster;
  roster.add_exporter_pod("dcgm-abcde");
  const Workload idle = work_of(scraped("node7", "dcgm-abcde"), roster);
  EXPECT_EQ(idle, Workload{});
  EXPECT_EQ(work_of(scraped("dcgm-abcde", "dcgm-abcde")), Workload{}) << "the host is called like the pod";
  EXPECT_EQ(work_of(scraped("node7", "dcgm-abcde")), Workload{}) << "the container is called like the scrape's job";
  EXPECT_EQ(work_of(with(scraped("node7", "nvidia-dcgm-exporter-abcde"), "container", "main")), Workload{});

  // honor_labels: true: the workload's labels stay, and the rest are the scrape's.
  Labels honoured = with(with(scraped("node7", "bert-0"), "namespace", "ml"), "container", "train");
  EXPECT_EQ(work_of(honoured, roster).program(), "ml/bert/train");

  // A scrape without the pod's label.
  roster.add_exporter_container("nvidia-dcgm-exporter");
  EXPECT_EQ(work_of(with(scraped("node7", ""), "pod", ""), roster), Workload{});
}

TEST(Gpus, ThoseWhoShareAGpuAreItsUsersTogether) {
  Roster roster;
  Gpus gpus(mapping(), roster);
  for (const char* replica : {"a", "b"})
    for (const char* pod : {"x-0", "y-0"})
      gpus.add(scraped("node7", "dcgm-abcde", {{"exported_pod", pod}, {"prometheus_replica", replica}}),
               points({1, 2, 3}, replica[0] == 'a' ? 0 : 300));
  const std::vector<Tenancy> users = tenancies(only_gpu(gpus));
  ASSERT_EQ(users.size(), 2U) << "each once, whoever scraped it";
  EXPECT_EQ(users[0].workload.pod, "x-0");
  EXPECT_EQ(users[1].workload.pod, "y-0");
}

TEST(Identity, PortsAndSlashesLeaveTheHost) {
  EXPECT_EQ(host_of("node1:9400"), "node1");
  EXPECT_EQ(host_of("10.1.2.3:9400"), "10.1.2.3");
  EXPECT_EQ(host_of("[fe80::1]:9400"), "[fe80::1]");
  EXPECT_EQ(host_of("fe80::1"), "fe80::1");
  EXPECT_EQ(host_of("a/b"), "a_b");
}

TEST(Identity, TheOwnersOfPods) {
  EXPECT_EQ(owner_of_pod("train-7c9d8b6f5-x2x4z"), "train");
  EXPECT_EQ(owner_of_pod("nightly-28512345-k8s7p"), "nightly");  // from a CronJob
  EXPECT_EQ(owner_of_pod("train-x2x4z"), "train");
  EXPECT_EQ(owner_of_pod("vllm-0"), "vllm");
  EXPECT_EQ(owner_of_pod("resnet-worker-3"), "resnet-worker");
  EXPECT_EQ(owner_of_pod("gpt-training"), "gpt-training");
  EXPECT_EQ(owner_of_pod("7"), "7");
}

TEST(Mapping, AUsersFileAddsAndReplaces) {
  const auto own = Mapping::read(R"(
[[exporter]]
name = "ours"
used = ["my_vram"]
unit = "GiB"
index_labels = ["card"]
[[exporter]]
name = "dcgm-exporter"
used = "renamed_used"
unit = "MiB"
device_labels = ["UUID"]
)",
                                 "own.toml");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->find("my_vram")->exporter->unit_bytes, 1024.0 * kMiB);
  EXPECT_EQ(own->find("my_vram")->rank, 0U);
  EXPECT_FALSE(own->find("DCGM_FI_DEV_FB_USED"));
  EXPECT_TRUE(own->find("nvidia_smi_memory_used_bytes"));
}

TEST(Mapping, ANameThatEndsWithAUnitIsInThatUnit) {
  for (const char* part : {"USED", "FREE", "RESERVED", "TOTAL", "CAPACITY"})
    for (const auto& [suffix, unit_bytes] :
         {std::pair("", 1.0 * kMiB), std::pair("_MIB", 1.0 * kMiB), std::pair("_BYTES", 1.0)}) {
      const auto meaning = mapping().find(std::string("DCGM_FI_DEV_FB_") + part + suffix);
      ASSERT_TRUE(meaning) << part << suffix;
      EXPECT_EQ(meaning->unit_bytes, unit_bytes) << part << suffix;
    }
  EXPECT_LT(mapping().find("DCGM_FI_DEV_FB_USED_BYTES")->name_rank, mapping().find("DCGM_FI_DEV_FB_USED")->name_rank);
  EXPECT_EQ(mapping().find("gpu_memory_used_MiB")->unit_bytes, 1.0 * kMiB);
  EXPECT_EQ(mapping().find("nvidia_smi_compute_app_used_memory_bytes")->unit_bytes, 1);
}

TEST(Mapping, ErrorsNameTheLine) {
  const auto error = [](std::string_view toml) {
    const auto read = Mapping::read(toml, "own.toml");
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(error("[[exporter]]\nname = \"x\"\nused = [\"u\"]\nunit = \"MiBs\"\nindex_labels = [\"gpu\"]\n"),
            "own.toml:4: \"MiBs\" is not a unit; expected bytes, KiB, MiB, GiB, kB, MB or GB");
  EXPECT_EQ(error("[[exporter]]\nname = \"x\"\nused = 5\nunit = \"MiB\"\nindex_labels = [\"gpu\"]\n"),
            "own.toml:3: \"used\" must be a list of names, for example used = [\"a\", \"b\"]");
  EXPECT_EQ(error("[[exporter]]\nname = \"x\"\nused = [\"u\"]\nunit = \"MiB\"\n"),
            "own.toml:1: nothing distinguishes the GPUs of a host; add device_labels or index_labels");
  EXPECT_EQ(error("colour = 1\n"), "own.toml:1: expected [[exporter]], [workload] or [context], found \"colour\"");
  EXPECT_NE(error("[[exporter]\n"), "");
}

}  // namespace
