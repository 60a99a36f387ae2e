#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <ctime>

#include "../temp_folder.hpp"
#include "nvml_fake.hpp"
#include "paths.hpp"

namespace vramtrack {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kTwoGpus =
    "gpu 0 uuid=GPU-a name=\"Fake H200\" pci=00000000:1D:00.0 total=80G used=1G+1M reserved=500M util=55 memutil=10\n"
    "gpu 1 uuid=GPU-b name=\"Fake H200\" pci=00000000:2E:00.0 total=80G used=2G\n";
std::string two_gpus(const std::string& more = "") {
  return std::string(kTwoGpus) + more;
}

TEST(Nvml, DescribesDevicesAndReadsMemoryVersion2) {
  FakeNvml fake(two_gpus());
  const Batch first = fake.poll();
  EXPECT_EQ(fake.used(first, "GPU-a"), kGiB);
  EXPECT_EQ(fake.bytes(first, Metric::device_reserved, "GPU-a"), 500 * kMiB);
  EXPECT_EQ(fake.used(first, "GPU-b"), 2 * kGiB);
  EXPECT_EQ(fake.used(fake.poll(), "GPU-a"), kGiB + kMiB);

  const DeviceInfo* device = fake.catalog.device("GPU-b");
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->index, 1);
  EXPECT_EQ(device->name, "Fake H200");
  EXPECT_EQ(device->pci_bus_id, "00000000:2e:00.0");
  EXPECT_EQ(device->capacity_bytes, 80 * kGiB);
}

TEST(Nvml, MemoryVersion1IncludesWhatIsReservedAndSaysNotHowMuch) {
  FakeNvml fake(two_gpus(), "v1");
  const Batch batch = fake.poll();
  EXPECT_EQ(fake.used(batch, "GPU-a"), kGiB + 500 * kMiB);
  EXPECT_EQ(fake.bytes(batch, Metric::device_reserved, "GPU-a"), std::nullopt);
  EXPECT_EQ(fake.catalog.device("GPU-a")->pci_bus_id, "00000000:1d:00.0") << "from the old, shorter field";
}

TEST(Nvml, MemoryVersion2ThatTheDriverRefusesIsNotAskedTwice) {
  FakeNvml fake(two_gpus("error call=memory_v2 code=25 to=0\n"));
  EXPECT_EQ(fake.used(fake.poll(), "GPU-a"), kGiB + 500 * kMiB);
  // It would answer now, but the choice is kept: otherwise the series would jump by the reserved amount.
  EXPECT_EQ(fake.used(fake.poll(), "GPU-a"), kGiB + kMiB + 500 * kMiB);
}

TEST(Nvml, UtilisationIsAReading) {
  FakeNvml fake(two_gpus());
  const Batch batch = fake.poll();
  ASSERT_THAT(batch.readings, SizeIs(2));
  EXPECT_EQ(batch.readings[1].gpu_utilisation_ratio, std::nullopt) << "GPU-b does not tell";
  EXPECT_EQ(batch.readings[0].device_id, "GPU-a");
  EXPECT_DOUBLE_EQ(batch.readings[0].gpu_utilisation_ratio.value_or(-1), 0.55);
  EXPECT_DOUBLE_EQ(batch.readings[0].gauges.memory_utilisation_ratio.value_or(-1), 0.10);
}

// --- processes ---------------------------------------------------------------------------------------------

class NvmlVariant : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Every, NvmlVariant, testing::Values("current", "r535", "v2", "v1"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(NvmlVariant, ReadsEveryProcessWithItsMemory) {
  FakeNvml fake(two_gpus("process gpu=0 pid=1001 used=100M+1M\n"
                         "process gpu=0 pid=1002 used=200M\n"
                         "process gpu=0 pid=1003 used=300M\n"
                         "process gpu=1 pid=1001 used=400M\n"),
                GetParam());
  for (std::uint64_t tick = 0; tick < 3; ++tick) {
    const Batch batch = fake.poll();
    EXPECT_EQ(fake.process(batch, "GPU-a", 1001), (100 + tick) * kMiB);
    EXPECT_EQ(fake.process(batch, "GPU-a", 1002), 200 * kMiB);
    EXPECT_EQ(fake.process(batch, "GPU-a", 1003), 300 * kMiB);
    EXPECT_EQ(fake.process(batch, "GPU-b", 1001), 400 * kMiB);
  }
  EXPECT_THAT(fake.source->notes().warnings, IsEmpty());
}

TEST_P(NvmlVariant, ReadsProcessesThatProcDoesNotShow) {
  FakeNvml fake(two_gpus("process gpu=0 pid=900001 used=2M\n"
                         "process gpu=0 pid=900002 used=4G\n"
                         "process gpu=0 pid=900003 used=8G\n"),
                GetParam());
  const Batch batch = fake.poll();
  EXPECT_EQ(fake.process(batch, "GPU-a", 900001), 2 * kMiB);
  EXPECT_EQ(fake.process(batch, "GPU-a", 900002), 4 * kGiB);
  EXPECT_EQ(fake.process(batch, "GPU-a", 900003), 8 * kGiB);
  EXPECT_THAT(fake.source->notes().warnings, Contains(HasSubstr("3 processes that hold GPU memory are not in /proc")));
}

TEST_P(NvmlVariant, ManyProcessesOutgrowTheBuffer) {
  std::string processes;
  for (int i = 0; i < 300; ++i) processes += "process gpu=0 pid=" + std::to_string(900000 + i) + " used=1M\n";
  FakeNvml fake(two_gpus(processes), GetParam());
  const Batch batch = fake.poll();
  for (std::uint32_t i = 0; i < 300; ++i) EXPECT_EQ(fake.process(batch, "GPU-a", 900000 + i), kMiB) << i;
}

TEST(Nvml, ACallTheDriverLacksGivesWayToTheOlderOne) {
  FakeNvml fake(
      two_gpus("process gpu=0 pid=1001 used=100M\n"
               "process gpu=0 pid=1002 used=200M\n"
               "error call=compute_v3 code=13\nerror call=compute_v2 code=13\n"));
  const Batch batch = fake.poll();
  EXPECT_EQ(fake.process(batch, "GPU-a", 1001), 100 * kMiB);
  EXPECT_EQ(fake.process(batch, "GPU-a", 1002), 200 * kMiB);
}

TEST(Nvml, AProcessOnSeveralListsIsOneSeriesCountedOnce) {
  FakeNvml fake(
      two_gpus("process gpu=0 pid=1001 list=C+G used=100M\n"
               "process gpu=0 pid=1002 list=G used=200M\n"
               "process gpu=0 pid=1003 list=C+MPS used=300M\n"
               "process gpu=1 pid=1003 list=MPS used=50M\n"));
  const Batch batch = fake.poll();
  EXPECT_EQ(fake.process(batch, "GPU-a", 1001), 100 * kMiB);
  EXPECT_EQ(fake.process(batch, "GPU-a", 1003), 300 * kMiB);
  EXPECT_EQ(fake.process(batch, "GPU-b", 1003), 50 * kMiB);
  EXPECT_EQ(fake.catalog.process(1001, 111100)->kind, "C+G");
  EXPECT_EQ(fake.catalog.process(1002, 222200)->kind, "G");
  EXPECT_EQ(fake.catalog.process(1003, 333300)->kind, "MPS");
}

TEST(Nvml, ProcessesCarryTheirIdentity) {
  FakeNvml fake(
      two_gpus("process gpu=0 pid=1001 used=100M\nprocess gpu=0 pid=1002 used=100M\n"
               "process gpu=0 pid=1003 used=100M\n"));
  fake.poll();
  const ProcessInfo* docker = fake.catalog.process(1001, 111100);
  ASSERT_NE(docker, nullptr);
  EXPECT_EQ(docker->framework, "PyTorch");
  EXPECT_THAT(docker->container, SizeIs(64));
  EXPECT_EQ(docker->ns_pid, 17U);
  EXPECT_EQ(fake.catalog.process(1002, 222200)->framework, "vLLM");
  EXPECT_EQ(fake.catalog.process(1002, 222200)->pod, "0a1b2c3d-0011-2233-4455-66778899aabb");
  EXPECT_EQ(fake.catalog.process(1003, 333300)->slurm_job, "4711.0");
}

TEST(Nvml, UnknownProcessMemoryIsMissingNotZero) {
  FakeNvml fake(two_gpus("process gpu=0 pid=1001 used=none,none,70M\n"));
  const Batch first = fake.poll();
  EXPECT_EQ(fake.process(first, "GPU-a", 1001), std::nullopt);
  EXPECT_THAT(fake.source->notes().warnings, Contains(HasSubstr("does not report how much GPU memory 1 process hold")));
  EXPECT_NE(fake.catalog.process(1001, 111100), nullptr) << "it is known all the same";
  fake.poll();
  EXPECT_EQ(fake.process(fake.poll(), "GPU-a", 1001), 70 * kMiB);
  EXPECT_THAT(fake.source->notes().warnings, IsEmpty());
}

TEST(Nvml, AListThatMayNotBeReadConcludesNothing) {
  FakeNvml fake(two_gpus("process gpu=0 pid=900001 used=100M\nerror call=compute code=4 from=1 to=2\n"));
  fake.poll();
  for (int i = 0; i < 2; ++i) {
    const Batch batch = fake.poll();
    EXPECT_EQ(fake.process(batch, "GPU-a", 900001), std::nullopt);
    EXPECT_THAT(batch.events, IsEmpty());
    EXPECT_TRUE(fake.used(batch, "GPU-a"));
  }
  EXPECT_EQ(fake.process(fake.poll(), "GPU-a", 900001), 100 * kMiB);
}

/// A child that lives until it is ended, with a real pid and real start ticks.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      pause();
      _exit(0);
    }
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

 private:
  pid_t pid_;
};

TEST(Nvml, AnEndedProcessIsAnEvent) {
  Child child;
  const std::uint32_t pid = child.pid();
  FakeNvml fake(two_gpus("process gpu=0 pid=" + std::to_string(pid) + " used=100M to=1\n"));
  fake.config.proc_root = "/proc";
  EXPECT_TRUE(fake.process(fake.poll(), "GPU-a", pid));
  EXPECT_TRUE(fake.process(fake.poll(), "GPU-a", pid));
  child.end();
  const auto ended = events_of(fake.poll(), Event::Kind::process_ended);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].pid, pid);
  EXPECT_NE(ended[0].pid_start_ticks, 0U);
}

TEST(Nvml, ASteadyPollOfEightGpusAndSixtyFourProcessesIsCheap) {
  std::string scenario;
  std::vector<std::unique_ptr<Child>> children;
  for (int gpu = 0; gpu < 8; ++gpu)
    scenario += "gpu " + std::to_string(gpu) + " uuid=GPU-" + std::to_string(gpu) +
                " total=80G used=1G util=50 temp=60 power=300000 power_limit=700000 fan=40\n";
  for (int i = 0; i < 64; ++i) {
    children.push_back(std::make_unique<Child>());
    scenario += "process gpu=" + std::to_string(i % 8) + " pid=" + std::to_string(children.back()->pid()) +
                " used=1G+1M sm=50\n";
  }
  FakeNvml fake(scenario);
  fake.config.proc_root = "/proc";
  for (int i = 0; i < 10; ++i) fake.poll(60);
  const auto cpu_s = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  constexpr int kPolls = 200;
  const double before = cpu_s();
  std::size_t samples = 0;
  for (int i = 0; i < kPolls; ++i) samples += fake.poll().samples.size();
  const double ms = (cpu_s() - before) * 1e3 / kPolls;
  EXPECT_EQ(samples, static_cast<std::size_t>(kPolls) * (16 + 64));
  RecordProperty("poll_cpu_ms", std::to_string(ms));
  std::printf("poll of 8 GPUs, 64 processes: %.3f ms CPU\n", ms);
  EXPECT_LT(ms, 20.0) << "about 0.6 ms in a release build; sanitizers and a busy machine get room";
}

// --- MIG ---------------------------------------------------------------------------------------------------

const std::string kMig =
    "gpu 0 uuid=GPU-a total=80G used=0 reserved=1G\n"
    "mig gpu=0 gi=1 ci=0 uuid=MIG-1 name=\"MIG 1g.10gb\" total=10G used=10M\n"
    "mig gpu=0 gi=2 ci=0 uuid=MIG-2 name=\"MIG 1g.10gb\" total=10G used=20M\n"
    "process gpu=0 pid=1001 gi=1 ci=0 used=100M\n"
    "process gpu=0 pid=1001 gi=2 ci=0 used=5M\n"
    "process gpu=0 pid=1002 gi=2 ci=0 used=200M\n";

void expect_mig(FakeNvml& fake) {
  const Batch batch = fake.poll();
  EXPECT_EQ(fake.used(batch, "MIG-1"), 110 * kMiB);
  EXPECT_EQ(fake.used(batch, "MIG-2"), 225 * kMiB);
  EXPECT_TRUE(fake.used(batch, "GPU-a"));
  EXPECT_EQ(fake.process(batch, "MIG-1", 1001), 100 * kMiB);
  EXPECT_EQ(fake.process(batch, "MIG-2", 1001), 5 * kMiB);
  EXPECT_EQ(fake.process(batch, "MIG-2", 1002), 200 * kMiB);
  EXPECT_EQ(fake.process(batch, "GPU-a", 1001), std::nullopt);
  const DeviceInfo* instance = fake.catalog.device("MIG-1");
  ASSERT_NE(instance, nullptr);
  EXPECT_EQ(instance->parent_id, "GPU-a");
  EXPECT_EQ(instance->capacity_bytes, 10 * kGiB);
  EXPECT_EQ(instance->name, "MIG 1g.10gb");
}

TEST(NvmlMig, InstancesAreDevicesWithTheirOwnProcesses) {
  FakeNvml fake(kMig);
  expect_mig(fake);
  EXPECT_EQ(fake.used(fake.poll(60), "MIG-1"), 110 * kMiB) << "after the instances were looked up again";
}

TEST(NvmlMig, WithoutPrivilegeEachInstanceIsAsked) {
  FakeNvml fake(kMig + "error call=parent_compute code=4\n");
  expect_mig(fake);
}

TEST(NvmlMig, OldEntriesWithoutInstanceAreTakenPerInstance) {
  FakeNvml fake(kMig + "error call=compute_v3 code=13\nerror call=compute_v2 code=13\n");
  expect_mig(fake);
}

// --- events, loss and return -------------------------------------------------------------------------------

TEST(Nvml, XidErrorsAreEventsOnce) {
  FakeNvml fake(two_gpus("xid gpu=1 code=79 at=1\nxid gpu=0 code=31 at=2\nxid gpu=0 code=12345 at=2\n"));
  EXPECT_THAT(fake.poll().events, IsEmpty());
  const auto first = events_of(fake.poll(), Event::Kind::xid);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].device_id, "GPU-b");
  EXPECT_EQ(first[0].xid, 79U);
  EXPECT_THAT(first[0].text, testing::StartsWith("XID 79"));
  const auto second = events_of(fake.poll(), Event::Kind::xid);
  ASSERT_THAT(second, SizeIs(2));
  EXPECT_THAT(second[1].text, HasSubstr("NVIDIA's list"));
  EXPECT_THAT(fake.poll().events, IsEmpty());
}

class NvmlLoss : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Codes, NvmlLoss, testing::Values(15, 16),
                         [](const auto& each) { return "code_" + std::to_string(each.param); });

TEST_P(NvmlLoss, OneLostGpuPausesAloneAndReturns) {
  FakeNvml fake(
      two_gpus("process gpu=0 pid=900001 used=100M\nprocess gpu=1 pid=1001 used=50M\n"
               "error call=any gpu=0 code=" +
               std::to_string(GetParam()) + " from=2 to=40\n"));
  int lost = 0;
  int resumed = 0;
  std::optional<SeriesId> before;
  for (int i = 0; i < 120; ++i) {
    const Batch batch = fake.poll();
    for (const Event& event : batch.events) {
      lost += event.kind == Event::Kind::device_lost ? 1 : 0;
      resumed += event.kind == Event::Kind::device_resumed ? 1 : 0;
      EXPECT_EQ(event.device_id, "GPU-a") << "nobody else is concerned";
      EXPECT_NE(event.kind, Event::Kind::process_ended) << "a pause is no end";
    }
    EXPECT_EQ(fake.used(batch, "GPU-b"), 2 * kGiB + 50 * kMiB) << "poll " << i;
    EXPECT_EQ(fake.process(batch, "GPU-b", 1001), 50 * kMiB) << "poll " << i;
    const bool away = lost != resumed;
    EXPECT_EQ(fake.used(batch, "GPU-a").has_value(), !away) << "poll " << i;
    EXPECT_EQ(fake.process(batch, "GPU-a", 900001).has_value(), !away) << "poll " << i;
    if (i == 0) before = fake.catalog.find({Metric::device_used, "GPU-a", 0, 0});
  }
  EXPECT_EQ(lost, 1);
  EXPECT_EQ(resumed, 1);
  EXPECT_EQ(fake.catalog.find({Metric::device_used, "GPU-a", 0, 0}), before) << "the same series goes on";
}

class NvmlDriverGone : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Codes, NvmlDriverGone, testing::Values(1, 9, 18),
                         [](const auto& each) { return "code_" + std::to_string(each.param); });

TEST_P(NvmlDriverGone, AReloadedDriverIsFoundAgain) {
  const std::string code = std::to_string(GetParam());
  FakeNvml fake(
      two_gpus("process gpu=0 pid=900001 used=100M\nprocess gpu=1 pid=1001 used=50M\n"
               "error call=any code=" +
               code + " from=2 to=20\nerror call=init code=9 from=2 to=20\n"));
  fake.poll();
  fake.poll();
  const Batch lost = fake.poll();
  EXPECT_THAT(events_of(lost, Event::Kind::device_lost), SizeIs(2));
  EXPECT_EQ(dlopen(fake.config.nvml_library.c_str(), RTLD_NOLOAD | RTLD_NOW), nullptr)
      << "the old library must be gone for a new one to be loaded";
  for (int i = 3; i <= 20; ++i) {
    const Batch batch = fake.poll();
    EXPECT_THAT(batch.samples, IsEmpty());
    EXPECT_THAT(batch.events, IsEmpty());
  }
  int resumed = 0;
  for (int i = 21; i < 60; ++i) {
    const Batch batch = fake.poll();
    for (const Event& event : batch.events) EXPECT_EQ(event.kind, Event::Kind::device_resumed);
    resumed += static_cast<int>(batch.events.size());
    if (resumed == 2) {
      EXPECT_TRUE(fake.used(batch, "GPU-a"));
      EXPECT_EQ(fake.process(batch, "GPU-b", 1001), 50 * kMiB);
    }
  }
  EXPECT_EQ(resumed, 2);
}

TEST(Nvml, AttemptsToReopenGrowRarer) {
  FakeNvml fake(two_gpus("error call=any code=9 from=1 to=1000\nerror call=init code=9 from=1 to=1000\n"));
  for (int i = 0; i <= 1000; ++i) fake.poll();
  int polls = 0;
  // Lost at 1, retried 2, 4, 8, ... seconds later, at most 30 s apart.
  while (events_of(fake.poll(), Event::Kind::device_resumed).empty() && polls < 400) ++polls;
  EXPECT_GT(polls, 5) << "it is not tried every second";
  EXPECT_LE(polls, 30);
}

TEST(Nvml, OneUnknownErrorIsAGapAndThreeAreALoss) {
  FakeNvml fake(
      two_gpus("error call=memory gpu=0 code=999 from=1 to=1\nerror call=memory gpu=0 code=999 from=3 to=5\n"));
  std::vector<std::size_t> events;
  std::vector<bool> sampled;
  for (int i = 0; i < 7; ++i) {
    const Batch batch = fake.poll();
    events.push_back(batch.events.size());
    sampled.push_back(fake.used(batch, "GPU-a").has_value());
  }
  EXPECT_THAT(events, testing::ElementsAre(0U, 0U, 0U, 0U, 0U, 1U, 1U));
  EXPECT_THAT(sampled, testing::ElementsAre(true, false, true, false, false, false, true));
}

TEST(Nvml, AGpuThatDoesNotTellItsMemoryIsWarnedOfOnce) {
  FakeNvml fake(two_gpus("error call=memory gpu=1 code=3\nprocess gpu=1 pid=1001 used=50M\n"));
  for (int i = 0; i < 3; ++i) {
    const Batch batch = fake.poll();
    EXPECT_EQ(fake.used(batch, "GPU-b"), std::nullopt);
    EXPECT_EQ(fake.process(batch, "GPU-b", 1001), 50 * kMiB);
  }
  EXPECT_THAT(fake.source->notes().warnings, SizeIs(1));
  EXPECT_THAT(fake.source->notes().warnings.front(), testing::Not(HasSubstr("root"))) << "which would not help";
  EXPECT_EQ(fake.catalog.device("GPU-b")->capacity_bytes, std::nullopt);
}

TEST(Nvml, AGpuWithoutMemoryOfItsOwnHasTheHosts) {
  const TempFolder folder;
  std::filesystem::copy(tests_dir() + "/fixtures/proc", folder.file("proc"),
                        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  const auto write = [&folder](int available_gib) {
    std::ofstream(folder.file("proc/meminfo"))
        << "MemTotal:       125829120 kB\nMemFree:           12 kB\nMemAvailable:   " << available_gib * 1024 * 1024
        << " kB\n";
  };
  write(100);
  FakeNvml fake(
      "gpu 0 uuid=GPU-a name=\"NVIDIA GB10\" pci=000F:01:00.0\nerror call=memory gpu=0 code=3\n"
      "process gpu=0 pid=1001 used=5G\n");
  fake.config.proc_root = folder.file("proc");
  Batch batch = fake.poll();
  EXPECT_EQ(fake.catalog.device("GPU-a")->capacity_bytes, 120 * kGiB);
  EXPECT_TRUE(fake.catalog.device("GPU-a")->shares_host_memory);
  EXPECT_EQ(fake.used(batch, "GPU-a"), 20 * kGiB);
  EXPECT_EQ(fake.process(batch, "GPU-a", 1001), 5 * kGiB);
  write(90);
  EXPECT_EQ(fake.used(fake.poll(), "GPU-a"), 30 * kGiB);
  ASSERT_THAT(fake.source->notes().warnings, SizeIs(1));
  EXPECT_THAT(fake.source->notes().warnings.front(), HasSubstr("it shares the host's"));
}

/// A Jetson's driver does not list processes either.
TEST(Nvml, AJetsonHasTheHostsMemory) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.file("proc"));
  std::ofstream(folder.file("proc/meminfo")) << "MemTotal: 64000000 kB\nMemAvailable: 44000000 kB\n";
  FakeNvml fake(
      "gpu 0 uuid=GPU-o name=\"Orin (nvgpu)\"\nerror call=memory gpu=0 code=3\nerror call=compute gpu=0 code=3\n"
      "error call=graphics gpu=0 code=3\nerror call=mps gpu=0 code=3\n");
  fake.config.proc_root = folder.file("proc");
  EXPECT_EQ(fake.used(fake.poll(), "GPU-o"), 20'000'000ULL * 1024);
  EXPECT_EQ(fake.catalog.device("GPU-o")->capacity_bytes, 64'000'000ULL * 1024);
  EXPECT_TRUE(fake.catalog.device("GPU-o")->shares_host_memory);
}

TEST(Nvml, AGpuThatOnceToldItsMemoryHasItsOwn) {
  const TempFolder folder;
  std::filesystem::copy(tests_dir() + "/fixtures/proc", folder.file("proc"),
                        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  std::ofstream(folder.file("proc/meminfo")) << "MemTotal: 125829120 kB\nMemAvailable: 1 kB\n";
  FakeNvml fake(two_gpus("error call=memory gpu=0 code=3 from=1\n"));
  fake.config.proc_root = folder.file("proc");
  EXPECT_EQ(fake.used(fake.poll(), "GPU-a"), kGiB);
  EXPECT_EQ(fake.used(fake.poll(), "GPU-a"), std::nullopt);
}

TEST(Nvml, ATotalThatTheDriverAdjustsIsTheCapacityFromThenOn) {
  FakeNvml fake(
      "gpu 0 uuid=GPU-a total=80G,80G,60G used=1G\nmig gpu=0 gi=1 ci=0 uuid=MIG-0 total=10G,10G,5G used=1G\n");
  fake.poll();
  fake.poll();
  EXPECT_EQ(fake.catalog.device("GPU-a")->capacity_bytes, 80 * kGiB);
  const std::uint64_t before = fake.catalog.device_revision();
  fake.poll();
  EXPECT_EQ(fake.catalog.device("GPU-a")->capacity_bytes, 60 * kGiB);
  EXPECT_EQ(fake.catalog.device("MIG-0")->capacity_bytes, 5 * kGiB);
  EXPECT_GT(fake.catalog.device_revision(), before);
}

/// A store that is continued is read only after its source has been opened.
TEST(Nvml, WhatAnEarlierWatchKnewOfTheTotalDoesNotLast) {
  FakeNvml fake("gpu 0 uuid=GPU-a total=60G used=1G\n");
  DeviceInfo stored;
  stored.id = "GPU-a";
  stored.capacity_bytes = 80 * kGiB;
  fake.catalog.describe(stored);
  fake.poll();
  EXPECT_EQ(fake.catalog.device("GPU-a")->capacity_bytes, 60 * kGiB);
}

/// Limits that the driver counts itself, on kernels without dmem: "1001: 8 of /folder" for each event.
std::vector<std::string> limits_of(const Batch& batch) {
  std::vector<std::string> out;
  for (const Event& event : events_of(batch, Event::Kind::capacity))
    out.push_back(fmt::format("{}: {} {}", event.pid, event.capacity_bytes / kGiB, event.text));
  return out;
}

TEST(Nvml, TheDriversOwnLimitsOfCgroupsAreWalls) {
  const TempFolder folder;
  FakeNvml fake(
      two_gpus("process gpu=0 pid=1001 used=100M\nlimit gpu=0 "
               "cgroup=/system.slice/docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope "
               "hard=8G,8G,6G,none\n"));
  fake.config.sys_root = folder.file("sys");
  EXPECT_THAT(limits_of(fake.poll(10)),
              testing::ElementsAre(
                  "1001: 8 NVIDIA's memory limit of "
                  "/system.slice/docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope"));
  EXPECT_THAT(limits_of(fake.poll(10)), IsEmpty()) << "it has not moved";
  Batch batch = fake.poll(10);
  EXPECT_THAT(limits_of(batch),
              testing::ElementsAre(
                  "1001: 6 NVIDIA's memory limit of "
                  "/system.slice/docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope"));
  EXPECT_THAT(events_of(batch, Event::Kind::note), IsEmpty()) << "the live loop tells people";
  EXPECT_THAT(limits_of(fake.poll(10)),
              testing::ElementsAre(
                  "1001: 0 NVIDIA's memory limit of "
                  "/system.slice/docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope"));
}

TEST(Nvml, ASoftLimitIsToldAndIsNoWall) {
  const TempFolder folder;
  FakeNvml fake(
      two_gpus("process gpu=0 pid=1001 used=3G,3G,5G,5G\nlimit gpu=0 "
               "cgroup=/system.slice/docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope "
               "hard=none soft=4G,4G,4G,4G,0\n"));
  fake.config.sys_root = folder.file("sys");
  const auto notes = [&] {
    const Batch batch = fake.poll(10);
    EXPECT_THAT(events_of(batch, Event::Kind::capacity), IsEmpty());
    std::vector<std::string> out;
    for (const Event& event : events_of(batch, Event::Kind::note)) out.push_back(event.text);
    return out;
  };
  EXPECT_THAT(
      notes(),
      testing::ElementsAre(testing::AllOf(
          testing::StartsWith("GPU 0: the soft limit of /system.slice/docker-"),
          testing::EndsWith("is 4.0 GiB, which is a threshold and does not limit its memory: 3.0 GiB in use"))));
  EXPECT_THAT(notes(), IsEmpty());
  EXPECT_THAT(notes(), testing::ElementsAre(testing::EndsWith(
                           "5.0 GiB in use; its processes may be ended when others need their share of the GPU")));
  EXPECT_THAT(notes(), IsEmpty());
  EXPECT_THAT(notes(), testing::ElementsAre(testing::EndsWith("no longer holds, or its processes have ended")));
}

TEST(Nvml, WhereTheKernelLimitsItsFilesTell) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.file(
      "sys/fs/cgroup//system.slice/docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope"));
  std::ofstream(
      folder.file("sys/fs/cgroup//system.slice/"
                  "docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope/dmem.max"))
      << "drm/0000:1d:00.0/vram0 max\n";
  FakeNvml fake(two_gpus(
      "process gpu=0 pid=1001 used=100M\nlimit gpu=0 "
      "cgroup=/system.slice/docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope hard=8G\n"));
  fake.config.sys_root = folder.file("sys");
  EXPECT_THAT(limits_of(fake.poll(10)), IsEmpty());
}

TEST(Nvml, AnOlderDriverHasNoLimitsOfItsOwn) {
  FakeNvml fake(two_gpus("process gpu=0 pid=1001 used=100M\nlimit gpu=0 "
                         "cgroup=/system.slice/"
                         "docker-4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b4f1c0d9b.scope hard=8G\n"),
                "v2");
  EXPECT_THAT(limits_of(fake.poll(10)), IsEmpty());
  FakeNvml refuses(two_gpus("process gpu=0 pid=1001 used=100M\nerror call=limits code=3\n"));
  EXPECT_THAT(limits_of(refuses.poll(10)), IsEmpty());
}

// --- the committed scenarios, with a clock that counts calls as made by a watch of the real binary ---------------

class NvmlFixture : public testing::Test {
 protected:
  void open(const std::string& name) {
    fake_.reset(new FakeNvml(""));
    const std::string file = tests_dir() + "/fixtures/nvml/" + name;
    setenv("VRAMTRACK_FAKE_NVML", file.c_str(), 1);
    fake_->config.proc_root = "/proc";
  }
  std::unique_ptr<FakeNvml> fake_;
  const std::string gpu_ = "GPU-11111111-0000-0000-0000-000000000000";
};

TEST_F(NvmlFixture, LeakGrowsByEightMebibytesAPoll) {
  open("leak.txt");
  const auto self = static_cast<std::uint32_t>(getpid());
  auto last = fake_->process(fake_->poll(), gpu_, self);
  for (int i = 0; i < 5; ++i) {
    const auto next = fake_->process(fake_->poll(), gpu_, self);
    ASSERT_TRUE(last && next);
    EXPECT_EQ(*next - *last, 8 * kMiB);
    last = next;
  }
}

TEST_F(NvmlFixture, DriverReloadIsSurvived) {
  open("driver_reload.txt");
  std::vector<Event::Kind> kinds;
  for (int i = 0; i < 60; ++i)
    for (const Event& event : fake_->poll().events) kinds.push_back(event.kind);
  EXPECT_THAT(kinds, testing::ElementsAre(Event::Kind::device_lost, Event::Kind::device_resumed));
}

// --- when there is nothing to watch ------------------------------------------------------------------------

TEST(NvmlOpen, SaysWhatIsMissingAndWhatToDo) {
  FakeNvml no_gpu("");
  const Status none = no_gpu.open();
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("shows no GPU"));

  FakeNvml not_loaded(two_gpus("error call=init code=9\n"));
  const Status driver = not_loaded.open();
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("driver not loaded (9)"));
  EXPECT_THAT(driver.error().message, HasSubstr("modprobe nvidia"));

  FakeNvml missing(two_gpus());
  missing.config.nvml_library = "/nonexistent/libnvidia-ml.so.1";
  const Status library = missing.open();
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().message, HasSubstr("/nonexistent/libnvidia-ml.so.1"));
  EXPECT_THAT(library.error().message, HasSubstr("install the NVIDIA driver"));

  FakeNvml other(two_gpus());
  other.config.nvml_library = "libm.so.6";
  const Status wrong = other.open();
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("not NVIDIA's library"));
}

TEST(NvmlOpen, AGpuThatDoesNotAnswerIsNamedAndTheOthersAreWatched) {
  FakeNvml fake(two_gpus("error call=handle gpu=0 code=15\n"));
  const Batch batch = fake.poll();
  EXPECT_EQ(fake.used(batch, "GPU-a"), std::nullopt);
  EXPECT_EQ(fake.used(batch, "GPU-b"), 2 * kGiB);
  EXPECT_THAT(fake.source->notes().warnings, Contains(HasSubstr("GPU 0 is present but does not answer: GPU is lost")));
}

}  // namespace
}  // namespace vramtrack
