// The reports of a hook arrive in the ring, and the held memory follows from them.
#include "probe/recorder.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../temp_folder.hpp"
#include "probe/modules.hpp"
#include "probe/real.hpp"
#include "probe/ring.hpp"
#include "probe/self.hpp"
#include "probe/table.hpp"
#include "read_ring.hpp"

extern "C" void vramtrack_probe_label(std::uint64_t address, const char* category, const char* name);

namespace vramtrack::probe {
namespace {

/// A process opens its ring only once: all tests in this program share it, and examine what was added.
class Recorder : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static TempFolder of_program;
    folder = &of_program;
    setenv("VRAMTRACK_PROBE_DIR", folder->path().c_str(), 1);
    ASSERT_TRUE(is_recording());
  }
  void SetUp() override {
    ASSERT_TRUE(is_recording());
    before_ = read_ring(folder->path()).size();
  }
  void TearDown() override {
    gave_back_all([](const Holding&) { return true; });
    ring().header().limit_bytes = 0;
  }
  [[nodiscard]] std::vector<Slot> added() const {
    std::vector<Slot> all = read_ring(folder->path());
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before_));
    return all;
  }
  static bool take(std::uint64_t address, std::uint64_t bytes, Call call = Call::cu_mem_alloc, int device = 0) {
    Hook hook(call);
    if (!hook.may_take(device, bytes)) return false;
    hook.took(address, bytes);
    return true;
  }
  static TempFolder* folder;
  std::size_t before_ = 0;
};
TempFolder* Recorder::folder = nullptr;

TEST_F(Recorder, AnAllocationAndItsFreeAreRecordedAndCounted) {
  ASSERT_TRUE(take(0x1000, 4096));
  EXPECT_EQ(held_bytes(0), 4096U);
  EXPECT_EQ(gave_back(Level::driver, 0x1000).bytes, 4096U);
  EXPECT_EQ(held_bytes(0), 0U);
  const std::vector<Slot> slots = added();
  const std::vector<Slot> allocs = only(slots, Record::alloc);
  const std::vector<Slot> frees = only(slots, Record::free);
  ASSERT_EQ(allocs.size(), 1U);
  ASSERT_EQ(frees.size(), 1U);
  EXPECT_EQ(allocs[0].address, 0x1000U);
  EXPECT_EQ(allocs[0].bytes, 4096U);
  EXPECT_EQ(call_of(allocs[0]), Call::cu_mem_alloc);
  EXPECT_EQ(frees[0].bytes, 4096U);
  EXPECT_GE(time_us_of(frees[0]), time_us_of(allocs[0]));
}

TEST_F(Recorder, AHookWithinAHookPassesThrough) {
  Hook outer(Call::cl_create_buffer);
  ASSERT_TRUE(outer.may_take(0, 100));
  ASSERT_TRUE(take(0x5000, 100));  // OpenCL on CUDA
  outer.took(0x77, 100);
  EXPECT_EQ(held_bytes(0), 100U);
  EXPECT_EQ(only(added(), Record::alloc).size(), 1U);
}

/// Like the probe's own code: an exception passes through objects without destructors.
union WithoutDestructor {
  Hook hook;
  explicit WithoutDestructor(Call call) : hook(call) {}
  ~WithoutDestructor() {}
};
__attribute__((noinline)) void throws_through_a_hook() {
  const WithoutDestructor outer(Call::cl_create_buffer);
  throw 1;
}
__attribute__((noinline)) void uses_the_stack(int bytes) {
  [[maybe_unused]] volatile char room[4096];
  for (int i = 0; i < bytes; ++i) room[i] = 1;
}

TEST_F(Recorder, AnExceptionThroughAHookEndsNothing) {
  EXPECT_THROW(throws_through_a_hook(), int);
  ASSERT_TRUE(take(0x1000, 100));
  EXPECT_EQ(held_bytes(0), 100U);
  EXPECT_THROW(throws_through_a_hook(), int);
  uses_the_stack(4096);
  [] {
    // Below the hook's stack frame.
    volatile char room[2048];
    room[0] = 1;
    ASSERT_TRUE(take(0x2000, 100));
    EXPECT_EQ(room[0], 1);
  }();
  EXPECT_EQ(held_bytes(0), 200U);
  {
    Hook outer(Call::cl_create_buffer);
    EXPECT_FALSE(outer.passes());
    EXPECT_THROW(throws_through_a_hook(), int);
  }
  ASSERT_TRUE(take(0x3000, 100)) << "the inner one ended with the outer one";
  EXPECT_EQ(held_bytes(0), 300U);
}

TEST_F(Recorder, WhatFailsIsRecordedWithWhatWasAskedFor) {
  for (const Call call : {Call::cu_mem_alloc, Call::cu_mem_host_alloc}) {
    Hook hook(call);
    ASSERT_TRUE(hook.may_take(0, 5000));
    hook.failed(true, 77);
  }
  lacked_block(Call::torch_block, 1, 6000);
  const std::vector<Slot> failed = only(added(), Record::failed);
  ASSERT_EQ(failed.size(), 3U);
  EXPECT_EQ(failed[0].bytes, 5000U);
  EXPECT_EQ(failed[0].address, 77U);
  EXPECT_EQ(failed[1].bytes, 5000U) << "host memory is not counted, and is asked for all the same";
  EXPECT_EQ(failed[2].bytes, 6000U);
  EXPECT_EQ(device_of(failed[2]), 1);
  EXPECT_EQ(held_bytes(0), 0U);
}

TEST_F(Recorder, AFreeThatFailsIsUndone) {
  ASSERT_TRUE(take(0x1000, 10));
  const Holding holding = gave_back(Level::driver, 0x1000);
  holds_still(holding);
  EXPECT_EQ(held_bytes(0), 10U);
  EXPECT_EQ(holdings().find(Level::driver, 0x1000).bytes, 10U);
}

TEST_F(Recorder, UnknownFreesAreNothing) {
  EXPECT_EQ(gave_back(Level::driver, 0xdead).address, 0U);
  EXPECT_EQ(gave_back(Level::driver, 0).address, 0U);
  EXPECT_TRUE(added().empty());
}

TEST_F(Recorder, ALimitRefusesBeforeTheCallAndIsRecorded) {
  ring().header().limit_bytes = 1000;
  EXPECT_TRUE(take(0x1000, 600));
  EXPECT_FALSE(take(0x2000, 401));
  EXPECT_TRUE(take(0x2000, 400));
  EXPECT_FALSE(take(0x3000, ~std::uint64_t{0})) << "a size that wraps the sum is refused, too";
  EXPECT_TRUE(take(0x4000, 5000, Call::cu_mem_host_alloc, -1)) << "pinned host memory is no device memory";
  EXPECT_TRUE(take(0x5000, 900, Call::cu_mem_alloc, 1)) << "each device has the limit";
  const std::vector<Slot> refused = only(added(), Record::refused);
  ASSERT_EQ(refused.size(), 2U);
  EXPECT_EQ(refused[0].address, 600U) << "held";
  EXPECT_EQ(refused[0].bytes, 401U);
}

TEST_F(Recorder, AFailedCallGivesItsShareOfTheLimitBack) {
  {
    Hook hook(Call::cu_mem_alloc);
    ASSERT_TRUE(hook.may_take(0, 700));
    hook.failed(true, 123);
  }
  EXPECT_EQ(held_bytes(0), 0U);
  const std::vector<Slot> failed = only(added(), Record::failed);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].bytes, 700U);
  EXPECT_EQ(failed[0].address, 123U);
}

TEST_F(Recorder, BlocksAndTheirSegmentMayHaveOneAddress) {
  ASSERT_TRUE(take(0x1000, 1 << 20));
  took_block(Call::torch_block, 0, 0x1000, 512);
  EXPECT_EQ(gave_back(Level::block, 0x1000).bytes, 512U);
  EXPECT_EQ(held_bytes(0), 1U << 20U);
}

TEST_F(Recorder, ADestroyedContextFreesWhatItOwned) {
  for (std::uint64_t i = 1; i <= 1000; ++i)
    ASSERT_TRUE(take(i * 4096, 10, Call::cu_mem_alloc, static_cast<int>(i % 2)));
  gave_back_all([](const Holding& holding) { return holding.device == 1; });
  EXPECT_EQ(held_bytes(1), 0U);
  EXPECT_EQ(held_bytes(0), 5000U);
  EXPECT_EQ(only(added(), Record::free).size(), 500U);
}

TEST_F(Recorder, ManyThreadsLoseNothing) {
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (std::uint64_t i = 1; i <= 2000; ++i) {
        const std::uint64_t address = (t << 40U) + i * 256;
        ASSERT_TRUE(take(address, 1 << 20));
        if (i % 2 == 0) gave_back(Level::driver, address);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(held_bytes(0), 4000ULL << 20U);
  EXPECT_EQ(ring().header().lost, 0U);
}

TEST_F(Recorder, AForkedChildRecordsEverythingThoughItsParentSampled) {
  // More than a program may record at once, by some windows: the ring is read rarely, because it is long.
  const auto is_sampling = [&](std::uint64_t i) { return i % 20'000 == 0 && !only(added(), Record::sampling).empty(); };
  for (std::uint64_t i = 1; !is_sampling(i); ++i) {
    ASSERT_LT(i, 500'000U);
    ASSERT_TRUE(take(i * 512, 512));
  }
  const pid_t child = fork();
  if (child == 0) {
    for (std::uint64_t i = 1; i <= 20; ++i) (void)take(i * 512, 1);
    _exit(only(read_ring(folder->path()), Record::alloc).size() == 20 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Recorder, AForkedChildHoldsNothingAndHasARingOfItsOwn) {
  ASSERT_TRUE(take(0x1000, 4096));
  const pid_t child = fork();
  if (child == 0) {
    const bool is_empty = gave_back(Level::driver, 0x1000).address == 0;
    const bool takes = take(0x9000, 1) && held_bytes(0) == 1;
    const std::vector<Slot> own = read_ring(folder->path());
    _exit(is_empty && takes && only(own, Record::alloc).size() == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(held_bytes(0), 4096U);
}

TEST_F(Recorder, WithoutARingALimitHolds) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("VRAMTRACK_PROBE_DIR", "/nowhere/at/all", 1);
    setenv("VRAMTRACK_PROBE_LIMIT_BYTES", "1000", 1);
    const bool is_taken = take(0x1000, 600);
    const bool is_refused = !take(0x2000, 600);
    gave_back(Level::driver, 0x1000);
    _exit(is_taken && is_refused && take(0x2000, 600) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Recorder, AnotherImageOfTheProcessHasARingOfItsOwn) {
  const pid_t child = fork();
  if (child == 0) {
    std::ofstream(folder->file("ring." + std::to_string(getpid()) + ".1")) << "of the image before";
    const bool is_taken = take(0x1000, 600);
    _exit(is_taken && std::filesystem::exists(folder->file("ring." + std::to_string(getpid()) + ".2")) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder->path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << "what is being made is renamed";
}

/// Like the files of each API.
Table<int> of_an_api;
Table<int> used_on;
void forget_of_an_api() {
  of_an_api.reset();
  used_on.unlock_after_fork();
}
VRAMTRACK_ON_FORK(forget_of_an_api);

TEST_F(Recorder, AForkedChildWaitsForNoLockThatAnotherThreadHeld) {
  of_an_api.put({1, 1}, 1);
  used_on.put({1, 1}, 7);
  ASSERT_TRUE(take(0x1000, 1));
  std::atomic<int> holding{0};
  std::atomic<bool> is_done{false};
  const auto hold = [&] {
    ++holding;
    while (!is_done) std::this_thread::yield();
  };
  std::thread first([&] { of_an_api.each([&](const Key&, int) { hold(); }); });
  std::thread second([&] { used_on.update({1, 1}, [&](int&) { hold(); }); });
  while (holding != 2) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int value = 0;
    const bool is_forgotten = !of_an_api.find({1, 1}, value);
    of_an_api.put({1, 2}, 1);
    const bool is_kept = used_on.find({1, 1}, value) && value == 7;
    _exit(is_forgotten && is_kept && take(0x2000, 1) ? 0 : 1);
  }
  is_done = true;
  first.join();
  second.join();
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Recorder, AForkedChildReadsTheLoadersListThoughThreadsReadItAtTheFork) {
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (!is_done) (void)unloaded_objects();
    });
  int failures = 0;
  for (int i = 0; i < 50 && failures == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      (void)unloaded_objects();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failures += status != 0;
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

/// Runs in a child whose main thread has ended.
void* look_at_memory(void*) {
  while (true) {
    Mapping mapping;
    char state[512];
    // Waits until the main thread is a zombie.
    const std::string_view stat(state, read_file("/proc/self/stat", state, sizeof state));
    if (stat.find(") Z ") == std::string_view::npos) continue;
    const std::uint64_t written = 77;
    std::uint64_t read = 0;
    const bool is_read = read_memory(reinterpret_cast<std::uint64_t>(&written), &read, sizeof read) && read == 77;
    _exit(is_read && Maps().next(mapping) ? 0 : 1);
  }
}

TEST_F(Recorder, AThreadThatOutlivesTheMainThreadReadsItsMemory) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    pthread_t thread;
    pthread_create(&thread, nullptr, look_at_memory, nullptr);
    syscall(SYS_exit, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Wire, CallsHaveEachNumberOnce) {
  std::vector<bool> seen(256);
  for (const CallInfo& info : kCalls) {
    EXPECT_FALSE(seen[static_cast<std::size_t>(info.call)]) << info.name;
    seen[static_cast<std::size_t>(info.call)] = true;
  }
}

TEST_F(Recorder, LabelsAreWrittenWithEachTextOnce) {
  record_mark("first");  // with the name of this thread
  const std::size_t before = added().size();
  for (int i = 0; i < 3; ++i) vramtrack_probe_label(0x1000, "weights", "Net.layers.3.weight");
  vramtrack_probe_label(0x2000, "weights", nullptr);
  vramtrack_probe_label(0x3000, nullptr, "of no category");
  vramtrack_probe_label(0, "weights", "of no address");
  std::vector<Slot> slots = added();
  slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(before));
  const std::vector<Slot> labels = only(slots, Record::label);
  ASSERT_EQ(labels.size(), 4U);
  EXPECT_EQ(labels[0].address, 0x1000U);
  EXPECT_EQ(labels[3].address, 0x2000U);
  EXPECT_EQ(labels[0].bytes, labels[3].bytes) << "the category has one number";
  EXPECT_EQ(number_of(labels[0]), number_of(labels[2])) << "and the name";
  EXPECT_EQ(number_of(labels[3]), 0U);
  EXPECT_EQ(only(slots, Record::text).size(), 1U + 2U) << "7 bytes and 19 bytes, 16 a record";
}

}  // namespace
}  // namespace vramtrack::probe
