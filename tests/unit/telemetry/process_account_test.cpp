#include "telemetry/process_account.hpp"

#include <gmock/gmock.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe/wire.hpp"

/// A function with a name from llama.cpp.
extern "C" __attribute__((noinline, used)) int llama_kv_cache_of_a_test(int of) {
  return of + 1;
}

namespace vramtrack::telemetry {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

/// Events of a process without frames, which all have the same line.
struct Traced {
  Traced() {
    process.known.pid = static_cast<std::uint32_t>(::getpid());
    process.unwinder = std::make_shared<Unwinder>(process.known.pid);
  }
  static telemetry_event event(double time_s, std::uint64_t address, std::uint64_t bytes, probe::Call call) {
    telemetry_event e{};
    e.time_ns = static_cast<std::uint64_t>(time_s * 1e9);
    e.address = address;
    e.bytes = bytes;
    e.call = static_cast<std::uint32_t>(call);
    return e;
  }
  void allocate(double time_s, std::uint64_t address, std::uint64_t bytes,
                probe::Call call = probe::Call::cu_mem_alloc) {
    account.allocated(process, event(time_s, address, bytes, call), {none});
  }
  void free(double time_s, std::uint64_t address, probe::Call call = probe::Call::cu_mem_alloc) {
    account.freed(event(time_s, address, 0, call));
  }
  std::vector<std::uint64_t> none;
  FollowedProcess process;
  ProcessAccount account;
};

/// Memory that an allocator took from the driver is not below the libraries, however little of it is in blocks.
TEST(ProcessAccount, WhatNoLibraryWasAskedForIsALineOfItsOwn) {
  Traced traced;
  traced.allocate(1, 1, 20 * kMib);
  traced.allocate(1, 1, 12 * kMib, probe::Call::torch_block);
  EXPECT_EQ(traced.account.report(2, KernelHeld{30 * kMib, "DRM fdinfo"})->size(), 2U);
  auto told = traced.account.report(100, KernelHeld{50 * kMib, "DRM fdinfo"});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->back().site, "below the libraries (by DRM fdinfo)");
  EXPECT_EQ(told->back().live_bytes, 30.0 * kMib);
  EXPECT_TRUE(told->back().ages.empty());
  traced.free(150, 1);
  told = traced.account.report(190, KernelHeld{50 * kMib, "i915"});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->back().live_bytes, 50.0 * kMib);
  traced.allocate(250, 2, 60 * kMib);
  told = traced.account.report(290, KernelHeld{50 * kMib, "i915"});
  ASSERT_TRUE(told);
  EXPECT_NE(told->back().site.substr(0, 5), "below") << "less than was asked for is nothing";
  EXPECT_NE(traced.account.report(400)->back().site.substr(0, 5), "below") << "nobody tells";
}

TEST(ProcessAccount, TellsOnceThereIsSomethingToTellAndThenAtItsPace) {
  Traced traced;
  traced.allocate(1, 1, kMib);
  EXPECT_FALSE(traced.account.report(2));
  traced.allocate(3, 2, 8 * kMib);
  auto told = traced.account.report(4);
  ASSERT_TRUE(told);
  ASSERT_EQ(told->size(), 1U);
  EXPECT_EQ(told->front().live_bytes, 9.0 * kMib);
  EXPECT_EQ(told->front().live_blocks, 2);
  EXPECT_EQ(told->front().site, "(no stack)");
  traced.free(5, 1);
  EXPECT_FALSE(traced.account.report(33));
  told = traced.account.report(34);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->front().live_bytes, 8.0 * kMib);
  EXPECT_EQ(told->front().idle_s, 31);
  // Nothing happens: reports become rarer, and finally stop.
  EXPECT_FALSE(traced.account.report(123));
  EXPECT_TRUE(traced.account.report(124));
  EXPECT_FALSE(traced.account.report(3606));
  traced.free(4000, 2);
  told = traced.account.report(4001);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->front().live_bytes, 0);
}

TEST(ProcessAccount, CountsTheDevicesMemoryAlone) {
  Traced traced;
  traced.allocate(1, 1, 64 * kMib, probe::Call::cu_mem_alloc_host);
  EXPECT_FALSE(traced.account.report(2));
}

/// The first block of a segment has the segment's address.
TEST(ProcessAccount, ABlockIsNotTheMemoryOfTheDriverThatItLiesIn) {
  Traced traced;
  traced.allocate(1, 4096, 20 * kMib);
  traced.allocate(1, 4096, 10 * kMib, probe::Call::torch_block);
  EXPECT_EQ(traced.account.report(2)->front().live_bytes, 30.0 * kMib);
  traced.free(3, 4096, probe::Call::torch_block);
  EXPECT_EQ(traced.account.report(40)->front().live_bytes, 20.0 * kMib);
}

/// By the stack: that of a function of this program with a name that a rule matches, and none.
TEST(ProcessAccount, SumsByWhatMemoryIsFor) {
  Traced traced;
  const auto taken = std::make_unique<telemetry_stack_event>();
  taken->registers[16] = reinterpret_cast<std::uint64_t>(&llama_kv_cache_of_a_test) + 1;
  const std::vector<std::uint64_t> cache = {traced.process.unwinder->unwind(*taken, false).front()};
  const auto event = Traced::event(1, 7, 5 * kMib, probe::Call::cu_mem_alloc);
  traced.account.allocated(traced.process, event, {cache});
  traced.account.allocated(traced.process, Traced::event(1, 8, 2 * kMib, probe::Call::cu_mem_alloc), {cache});
  traced.allocate(1, 9, kMib);
  using ::testing::ElementsAre, ::testing::Pair;
  EXPECT_THAT(traced.account.categories(), ElementsAre(Pair("kv_cache", 7.0 * kMib), Pair("unknown", 1.0 * kMib)));
  traced.free(2, 7);
  traced.free(2, 9);
  EXPECT_THAT(traced.account.categories(), ElementsAre(Pair("kv_cache", 2.0 * kMib)));
  traced.allocate(3, 10, 3 * kMib, probe::Call::cu_mem_alloc_managed);
  EXPECT_THAT(traced.account.categories(), ElementsAre(Pair("managed", 3.0 * kMib), Pair("kv_cache", 2.0 * kMib)));
}

TEST(SiteNames, KnowTheAllocatorsThatAreTracedThemselves) {
  const std::vector<MappedFile> files = {{"/venv/torch/lib/libc10_cuda.so", 0x1000, 0x1000, 0},
                                         {"/usr/lib/libcuda.so.1", 0x8000, 0x1000, 0}};
  EXPECT_TRUE(is_of_traced_allocator(files, {0x8010, 0x1fff}));
  EXPECT_FALSE(is_of_traced_allocator(files, {0x8010, 0x2000}));
  EXPECT_FALSE(is_of_traced_allocator({}, {0x1000}));
}

TEST(SiteNames, AreBounded) {
  Traced traced;
  SiteNames names;
  for (std::uint64_t i = 0; i < 3 * SiteNames::kMostStacks; ++i) {
    const std::vector<std::uint64_t> stack = {i + 1};
    EXPECT_EQ(names.place_of(traced.process, {stack}).number, 1U);
  }
  EXPECT_EQ(names.name(1), "(no stack)");
  EXPECT_EQ(names.name(0), "(other lines)");
}

TEST(Unwinder, ReadsTheMappedFilesThatHaveCode) {
  const auto files = executable_files(
      "55d0-55e0 r--p 00000000 fd:01 7 /bin/a\n"
      "55e0-55f0 r-xp 00001000 fd:01 7 /bin/a b\n"
      "7f00-7f10 rwxp 00000000 00:00 0 \n"
      "7f10-7f20 r-xp 00000000 00:00 0   [vdso]\n"
      "nonsense\n");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0], (MappedFile{"/bin/a b", 0x55e0, 0x10, 0x1000, makedev(0xfd, 1), 7}));
}

TEST(PythonCode, ReadsTheVersionOfAnInterpretersName) {
  EXPECT_EQ(python_minor("python3.11"), 11);
  EXPECT_EQ(python_minor("libpython3.8.so.1.0"), 8);
  EXPECT_EQ(python_minor("python"), 0);
  EXPECT_EQ(python_minor("libfoo.so"), 0);
}

}  // namespace
}  // namespace vramtrack::telemetry
