#include "agent/own_cost.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

#include "../temp_folder.hpp"

namespace vramtrack::agent {
namespace {

OwnCost cost_of(OwnUse& use, const std::string& store_path) {
  OwnCost cost;
  use.add_to(cost, store_path);
  return cost;
}

void write(const std::string& path, std::size_t bytes) {
  std::ofstream(path) << std::string(bytes, 's');
}

double processor_s() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// How much `cpu_s` rises while `work` uses 0.2 s of CPU time.
template <class Work>
double rise_s(const Work& work) {
  OwnUse use;
  const double first = cost_of(use, "").cpu_s;
  EXPECT_GE(first, 0);
  double last = first;
  for (const double begin = processor_s(); processor_s() < begin + 0.2;) {
    work();
    const double now = cost_of(use, "").cpu_s;
    EXPECT_GE(now, last);
    last = now;
  }
  return last - first;
}

// The kernel measures the two with different clocks, which differ by a few ticks.
TEST(OwnUse, TimeOfTheProgramItselfCounts) {
  EXPECT_NEAR(rise_s([] {
                for (volatile int i = 0; i < 3'000'000;) i = i + 1;
              }),
              0.2, 0.1);
}

TEST(OwnUse, TimeOfTheKernelForTheProgramCounts) {
  std::ifstream zeros("/dev/zero", std::ios::binary);
  std::string bytes(4U << 20U, 'z');
  zeros.rdbuf()->pubsetbuf(nullptr, 0);
  EXPECT_NEAR(rise_s([&] { zeros.read(bytes.data(), static_cast<std::streamsize>(bytes.size())); }), 0.2, 0.1);
}

TEST(OwnUse, ResidentMemoryIsWhatIsInUse) {
  constexpr std::size_t kBytes = 64U << 20U;
  OwnUse use;
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::uint64_t reserved_only = cost_of(use, "").resident_bytes;
  EXPECT_GT(reserved_only, 0U);
  std::memset(memory, 1, kBytes);
  const std::uint64_t written = cost_of(use, "").resident_bytes;
  ::munmap(memory, kBytes);
  EXPECT_GT(written,
            reserved_only + kBytes / 2);  // no upper bound: a sanitizer keeps bytes of its own per block
}

TEST(OwnUse, TheStoreIsItsFileAndTheLogBesideIt) {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  write(path, 5000);
  OwnUse without_log;
  EXPECT_EQ(cost_of(without_log, path).store_bytes, 5000U);
  write(path + "-wal", 300);
  write(path + "-shm", 70000);  // the index of the log: in memory, not on disk
  OwnUse use;
  const OwnCost cost = cost_of(use, path);
  EXPECT_EQ(cost.store_bytes, 5300U);
  EXPECT_TRUE(cost.recording);
}

TEST(OwnUse, TheStoreIsNotLookedUpEveryTime) {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  write(path, 5000);
  OwnUse use;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(cost_of(use, path).store_bytes, 5000U);
  write(path, 9000);
  const std::uint64_t again = cost_of(use, path).store_bytes;
  if (std::chrono::steady_clock::now() - begin >= std::chrono::seconds(10)) GTEST_SKIP() << "this machine stood still";
  EXPECT_EQ(again, 5000U);
  OwnUse other;
  EXPECT_EQ(cost_of(other, path).store_bytes, 9000U);
}

TEST(OwnUse, WithoutAStoreNothingIsRecorded) {
  OwnUse use;
  const OwnCost cost = cost_of(use, "");
  EXPECT_FALSE(cost.recording);
  EXPECT_EQ(cost.store_bytes, 0U);
}

/// A store that does not exist yet is recorded into all the same.
TEST(OwnUse, AStoreThatIsMissingIsEmpty) {
  const TempFolder folder;
  OwnUse use;
  const OwnCost cost = cost_of(use, folder.file("store.db"));
  EXPECT_TRUE(cost.recording);
  EXPECT_EQ(cost.store_bytes, 0U);
}

TEST(OwnUse, LeavesTheOtherFiguresAlone) {
  OwnUse use;
  OwnCost cost;
  cost.polls = 7;
  cost.samples = 70;
  cost.observe_s = 1.5;
  cost.sources.push_back({.name = "nvml", .polls = 7});
  use.add_to(cost, "");
  EXPECT_EQ(cost.polls, 7U);
  EXPECT_EQ(cost.samples, 70U);
  EXPECT_EQ(cost.observe_s, 1.5);
  EXPECT_EQ(cost.sources.size(), 1U);
}

}  // namespace
}  // namespace vramtrack::agent
