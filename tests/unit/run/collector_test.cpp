// All records of a program's probe arrive, however the program ends.
#include "run/collector.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "../temp_folder.hpp"
#include "probe/recorder.hpp"
#include "probe/ring.hpp"
#include "run/process_facts.hpp"

namespace vramtrack::run {
namespace {

using probe::Call;
using probe::Record;
using probe::Slot;

/// Runs `body` in a child with a probe that writes into `folder`.
pid_t probed(const std::string& folder, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("VRAMTRACK_PROBE_DIR", folder.c_str(), 1);
    body();
    _exit(0);
  }
  return child;
}

bool take(std::uint64_t address, std::uint64_t bytes) {
  probe::Hook hook(Call::cu_mem_alloc);
  if (!hook.may_take(0, bytes)) return false;
  hook.took(address, bytes);
  return true;
}

/// Writes a record that sampling does not affect.
void tell(std::uint64_t number) {
  probe::record_totals(Call::torch_block, 0, number, 0);
}

struct Collected {
  Collected()
      : collector(
            folder.path(), [this](const auto& process, const auto& records) { add(process, records); },
            [this](const std::string& text) { warnings.push_back(text); }) {}
  void look(bool is_over) {
    collector.find_new();
    collector.look(is_over);
  }
  void add(const ProbedProcess& process, std::span<const Slot> records) {
    if (process.index >= slots.size()) slots.resize(process.index + 1);
    slots[process.index].insert(slots[process.index].end(), records.begin(), records.end());
  }
  [[nodiscard]] std::size_t count(std::size_t process, Record record) const {
    return static_cast<std::size_t>(std::count_if(slots.at(process).begin(), slots.at(process).end(),
                                                  [&](const Slot& slot) { return probe::record_of(slot) == record; }));
  }
  TempFolder folder;
  std::vector<std::vector<Slot>> slots;
  std::vector<std::string> warnings;
  Collector collector;
};

TEST(Collector, LosesNothingOfAProgramThatIsKilled) {
  Collected all;
  const pid_t child = probed(all.folder.path(), [] {
    for (std::uint64_t i = 1; i <= 100'000; ++i) tell(i);
    raise(SIGKILL);
  });
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  all.look(false);
  ASSERT_EQ(all.slots.size(), 1U);
  EXPECT_EQ(all.collector.processes()[0].pid, static_cast<std::uint32_t>(child));
  EXPECT_EQ(all.count(0, Record::totals), 100'000U);
  EXPECT_EQ(all.count(0, Record::lost), 0U);
  EXPECT_TRUE(std::filesystem::is_empty(all.folder.path())) << "a ring whose process is gone goes with it";
  EXPECT_TRUE(all.warnings.empty());
}

TEST(Collector, KnowsAProcessThatCouldMakeNoRing) {
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{4096}}) {
    Collected all;
    const pid_t child = probed(all.folder.path(), [&] {
      const rlimit none{4096, 4096};
      setrlimit(RLIMIT_FSIZE, &none);
      setenv("VRAMTRACK_PROBE_LIMIT_BYTES", std::to_string(limit).c_str(), 1);
      if (take(1, 1024) && !take(2, 8192)) _exit(7);
    });
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), limit == 0 ? 0 : 7) << "it obeys the limit all the same";
    all.look(false);
    all.look(true);
    EXPECT_TRUE(all.collector.processes().empty());
    ASSERT_EQ(all.collector.unrecorded().size(), 1U);
    const UnrecordedProcess& process = all.collector.unrecorded().front();
    EXPECT_EQ(process.pid, static_cast<std::uint32_t>(child));
    EXPECT_GT(process.start_ticks, 0U);
    EXPECT_EQ(process.limit_bytes, limit);
    EXPECT_NE(process.why.find("ulimit -f"), std::string::npos) << process.why;
    EXPECT_NE(process.command.find("run_test"), std::string::npos) << process.command;
  }
}

TEST(Collector, KeepsUpWithAProgramThatWritesMoreThanItsRingHolds) {
  Collected all;
  constexpr std::uint64_t kCount = 3 * probe::kRingSlots;
  const pid_t child = probed(all.folder.path(), [] {
    for (std::uint64_t i = 1; i <= kCount; ++i) {
      // A program faster than its reader loses records; this one waits for room, which slower ones never need to do.
      if (probe::ring().exists())
        while (probe::ring().header().written - probe::ring().header().read > probe::kRingSlots / 2) usleep(100);
      tell(i);
    }
  });
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) all.look(false);
  all.look(true);
  EXPECT_EQ(all.count(0, Record::totals), kCount);
  EXPECT_EQ(all.count(0, Record::lost), 0U);
}

TEST(Collector, SaysHowManyRecordsFoundNoRoom) {
  Collected all;
  const pid_t child = probed(all.folder.path(), [] {
    for (std::uint64_t i = 1; i <= probe::kRingSlots; ++i) tell(i);
  });
  int status = 0;
  waitpid(child, &status, 0);
  all.look(true);
  ASSERT_EQ(all.count(0, Record::lost), 1U);
  EXPECT_GT(all.slots[0].back().a, 0U);
  EXPECT_EQ(all.slots[0].size() - 1, probe::kRingSlots);
}

TEST(Collector, ItsSpareRingsServeProcessesThatMayWriteNoFile) {
  Collected all;
  constexpr int kProcesses = 3;
  for (int round = 0; round < 2; ++round) {
    all.collector.make_spares();
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i)
      children.push_back(probed(all.folder.path(), [] {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_FSIZE, &none);
        for (std::uint64_t number = 1; number <= 1000; ++number) tell(number);
      }));
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status)) << status;
    }
    all.look(false);
  }
  ASSERT_EQ(all.slots.size(), 2U * kProcesses);
  for (std::size_t i = 0; i < all.slots.size(); ++i) EXPECT_EQ(all.count(i, Record::totals), 1000U);
  EXPECT_TRUE(all.warnings.empty());
}

TEST(Collector, LimitsReachProcessesThatRunAndThoseThatCome) {
  Collected all;
  all.collector.set_limits({1000, 0});
  int ready[2];
  int go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = probed(all.folder.path(), [&] {
    char byte = 0;
    take(4096, 10);
    (void)!write(ready[1], &byte, 1);
    (void)!read(go[0], &byte, 1);  // the limit has been set
    const bool is_refused = !take(8192, 1000);
    (void)!write(ready[1], &byte, 1);
    (void)!read(go[0], &byte, 1);  // it has been lifted
    _exit(is_refused && take(8192, 1000) ? 0 : 1);
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  all.look(false);
  EXPECT_EQ(all.collector.held_bytes(0, 0), 10);
  ASSERT_EQ(write(go[1], &byte, 1), 1);
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  all.collector.set_limits({});
  ASSERT_EQ(write(go[1], &byte, 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  all.look(true);
  EXPECT_EQ(all.count(0, Record::refused), 1U);
}

TEST(Collector, ARingThatIsNoneIsSaidOnce) {
  Collected all;
  std::ofstream(all.folder.file("ring.1")) << "not a ring, and shorter than its header";
  for (int i = 0; i < 5; ++i) all.look(false);
  ASSERT_EQ(all.warnings.size(), 1U);
  EXPECT_NE(all.warnings[0].find("ring.1"), std::string::npos);
}

TEST(ProcessFacts, TellsDevicesTotalsAndWhatRanOut) {
  Collected all;
  const pid_t child = probed(all.folder.path(), [] {
    probe::record_device(1, "GPU-0123", "Some GPU of a long name", 80ULL << 30U);
    probe::record_totals(Call::torch_block, 1, 100, 200);
    probe::Hook hook(Call::cu_mem_alloc);
    (void)hook.may_take(1, 4096);
    hook.failed(true, 12);
  });
  int status = 0;
  waitpid(child, &status, 0);
  all.look(true);
  ProcessFacts facts;
  facts.take(all.slots.at(0));
  ASSERT_TRUE(facts.devices().contains(1));
  const ProbedDevice& device = facts.devices().at(1);
  EXPECT_EQ(device.uuid, "GPU-0123");
  EXPECT_EQ(device.name, "Some GPU of a long name");
  EXPECT_EQ(device.total_bytes, 80ULL << 30U);
  EXPECT_EQ(device.allocated_bytes, 100U);
  EXPECT_EQ(device.reserved_bytes, 200U);
  const std::vector<MemoryOut> outs = facts.memory_outs();
  ASSERT_EQ(outs.size(), 1U);
  EXPECT_EQ(outs[0].asked_bytes, 4096U);
  EXPECT_FALSE(outs[0].by_limit);
  EXPECT_TRUE(facts.memory_outs().empty());
}

}  // namespace
}  // namespace vramtrack::run
