#include "fleet/gpus.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace vramtrack;
using namespace vramtrack::fleet;

constexpr std::uint64_t kMiB = 1024 * 1024;

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
  Gpus gpus(mapping());
  gpus.add(dcgm("USED"), points({100, 200}));
  const Gpu gpu = only_gpu(gpus);
  EXPECT_EQ(gpu.device.id, "GPU-1");
  EXPECT_EQ(gpu.device.host, "node1");
  EXPECT_EQ(gpu.device.index, 3);
  EXPECT_EQ(gpu.device.name, "H100");
  EXPECT_EQ(mib(used_memory(gpu)), (std::vector<std::uint64_t>{100, 200}));
}

TEST(Gpus, HowBusyAGpuIsIsToldOnceForAllItsUsers) {
  Gpus gpus(mapping());
  const auto util = [](const char* pod) {
    return Labels{{"Hostname", "node1"}, {"UUID", "GPU-1"}, {"__name__", "DCGM_FI_DEV_GPU_UTIL"}, {"pod", pod}};
  };
  gpus.add(dcgm("USED"), points({100, 200}));
  gpus.add(util("b"), points({50, 60}, 1000));
  gpus.add(util("a"), points({40, 50, std::nan("")}));
  EXPECT_EQ(gpus.samples(), 2U) << "of memory";
  EXPECT_EQ(busy_readings(only_gpu(gpus)), (std::vector<Reading>{{1000, 4000}, {2000, 5000}, {3000, 6000}}));
}

TEST(Gpus, ARatioIsAShareOfOneAndAPercentageOfThatNameIsOne) {
  const auto busy = [](std::initializer_list<double> values) {
    Gpus gpus(mapping());
    gpus.add(dcgm("USED_BYTES"), points({100, 200}));
    gpus.add({{"Hostname", "node1"}, {"UUID", "GPU-1"}, {"__name__", "DCGM_FI_DEV_GPU_UTIL_RATIO"}}, points(values));
    return busy_readings(only_gpu(gpus));
  };
  EXPECT_EQ(busy({0.4, 1}), (std::vector<Reading>{{1000, 4000}, {2000, 10'000}}));
  EXPECT_EQ(busy({40, 1, 0}), (std::vector<Reading>{{1000, 4000}, {2000, 100}, {3000, 0}})) << "DCGM 4.5 and 4.6";
}

TEST(Gpus, WithoutUsedMemoryItIsWhatIsNotFree) {
  Gpus gpus(mapping());
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
  Gpus gpus(mapping());
  // DCGM's blank 64-bit and 32-bit values, a stale marker, and no memory at all.
  gpus.add(dcgm("USED"), points({9223372036854775794.0, 2147483632.0, std::nan(""), -1, INFINITY, 0}));
  EXPECT_EQ(gpus.blank_values(), 5U);
  EXPECT_EQ(mib(used_memory(only_gpu(gpus))), (std::vector<std::uint64_t>{0}));
}

TEST(Gpus, PodsThatFollowEachOtherAreOneGpu) {
  Gpus gpus(mapping());
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
  Gpus gpus(mapping());
  gpus.add(dcgm("USED"), points({1, 2}));
  gpus.add(dcgm("USED"), points({3}, 5000));
  const Gpu gpu = only_gpu(gpus);
  EXPECT_EQ(gpu.tracks.size(), 1U);
  EXPECT_EQ(mib(used_memory(gpu)), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(Gpus, CopiesForEachJobCountOnce) {
  Gpus gpus(mapping());
  gpus.add(dcgm("USED", {{"hpc_job", "1"}}), points({10, 20, 30}));
  gpus.add(dcgm("USED", {{"hpc_job", "2"}}), points({10, 20, 30}));
  const UsedMemory used = used_memory(only_gpu(gpus));
  EXPECT_FALSE(used.is_shared);
  EXPECT_EQ(mib(used), (std::vector<std::uint64_t>{10, 20, 30}));
}

TEST(Gpus, SharesOfPodsAreAddedUp) {
  Gpus gpus(mapping());
  gpus.add(dcgm("USED", {{"pod", "a"}}), points({10, 10, 10}));
  gpus.add(dcgm("USED", {{"pod", "b"}}), points({10, 50, 90}));
  const UsedMemory used = used_memory(only_gpu(gpus));
  EXPECT_TRUE(used.is_shared);
  EXPECT_EQ(mib(used), (std::vector<std::uint64_t>{20, 60, 100}));
}

TEST(Gpus, TwoNamesOfOneExporterCountOnceAndTheExactOneIsRead) {
  Gpus gpus(mapping());
  const double mib = kMiB;
  // Both names in each scrape, repeated for each pod that shares the GPU: rounded values are no shares.
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
  Gpus gpus(mapping());
  gpus.add(dcgm("USED", {{"pod", "a"}}), points({10, 10}));
  gpus.add(dcgm("USED", {{"pod", "b"}}), points({10, 50}));
  gpus.add(dcgm("USED_BYTES", {{"pod", "a"}}), points({10.0 * kMiB, 10.0 * kMiB}));
  gpus.add(dcgm("USED_BYTES", {{"pod", "b"}}), points({10.0 * kMiB, 50.0 * kMiB}));
  const UsedMemory used = used_memory(only_gpu(gpus));
  EXPECT_TRUE(used.is_shared);
  EXPECT_EQ(mib(used), (std::vector<std::uint64_t>{20, 60}));
}

TEST(Gpus, AnExporterThatIsUpgradedGoesOnAsOneGpu) {
  Gpus gpus(mapping());
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
  Gpus gpus(mapping());
  gpus.add(dcgm("USED"), points({100}));
  EXPECT_EQ(gpus.capacity_missing_at(), 1000);
  gpus.add_capacity(dcgm("USED"), points({100, 150}));
  gpus.add_capacity(dcgm("FREE"), points({800, 749}));
  gpus.add_capacity(dcgm("RESERVED"), points({100, 100}));
  EXPECT_EQ(gpus.capacity_missing_at(), std::nullopt);
  EXPECT_EQ(only_gpu(gpus).capacity_bytes, 1000 * kMiB);
}

TEST(Gpus, TheBetterOfTwoExportersIsRead) {
  Gpus gpus(mapping());
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
  Gpus gpus(mapping());
  gpus.add(dcgm("USED", {{"GPU_I_ID", "2"}}), points({1}));
  gpus.add(dcgm("USED", {{"GPU_I_ID", "7"}}), points({2}));
  const auto machines = gpus.take();
  ASSERT_EQ(machines.at("node1").gpus.size(), 2U);
  EXPECT_EQ(machines.at("node1").gpus.at("GPU-1/gi2").device.parent_id, "GPU-1");
}

TEST(Gpus, ASeriesThatNamesNoGpuIsCounted) {
  Gpus gpus(mapping());
  gpus.add({{"__name__", "DCGM_FI_DEV_FB_USED"}}, points({1}));
  gpus.add({{"__name__", "up"}}, points({1}));
  EXPECT_EQ(gpus.unnamed_series(), 1U);
  EXPECT_TRUE(gpus.take().empty());
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
  EXPECT_EQ(owner_of_pod("nightly-28512345-k8s7p"), "nightly");  // of a CronJob
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
