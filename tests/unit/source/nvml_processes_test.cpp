#include "source/nvml_processes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <set>

namespace vramtrack::nvml {
namespace {

struct Listed {
  std::uint32_t pid;
  std::uint64_t used;
};

/// A buffer as left by a driver with entries of `stride` bytes.
std::vector<std::byte> written(const std::vector<Listed>& processes, std::size_t stride) {
  std::vector<std::byte> buffer(processes.size() * kR535Stride, kPoison);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    std::byte* at = buffer.data() + i * stride;
    std::memset(at, 0, stride);
    std::memcpy(at, &processes[i].pid, 4);
    std::memcpy(at + 8, &processes[i].used, 8);
    std::memset(at + 16, 0xff, 8);
  }
  return buffer;
}

RC_GTEST_PROP(InferStride, TellsBothLayoutsApartByVisiblePids, (bool wide)) {
  const auto count = *rc::gen::inRange<std::size_t>(2, 40);
  const auto pids = *rc::gen::unique<std::vector<std::uint32_t>>(count, rc::gen::inRange<std::uint32_t>(1, 4194304));
  std::vector<Listed> processes;
  std::set<std::uint32_t> alive;
  for (const std::uint32_t pid : pids) {
    processes.push_back({pid, *rc::gen::inRange<std::uint64_t>(1, 80000) << 20U});
    alive.insert(pid);
  }
  const std::size_t stride = wide ? kR535Stride : sizeof(ProcessV2);
  const Stride told =
      infer_stride(written(processes, stride), count, [&](std::uint32_t p) { return alive.count(p) != 0; });
  RC_ASSERT(told.bytes == stride);
  RC_ASSERT(told.certain);
}

TEST(InferStride, WithoutVisiblePidsTheWrittenLengthTells) {
  // 2 MiB read as a pid would be plausible, so neither visible pids nor plausibility decide.
  const std::vector<Listed> processes = {{100, 2U << 20U}, {200, 2U << 20U}, {300, 2U << 20U}};
  const auto nobody = [](std::uint32_t) { return false; };
  for (const std::size_t stride : {sizeof(ProcessV2), kR535Stride}) {
    const Stride told = infer_stride(written(processes, stride), processes.size(), nobody);
    EXPECT_EQ(told.bytes, stride);
    EXPECT_FALSE(told.certain);
  }
}

TEST(InferStride, OneEntryDecidesNothing) {
  EXPECT_FALSE(infer_stride(written({{100, 5}}, kR535Stride), 1, [](std::uint32_t) { return true; }).certain);
}

TEST(Merge, TakesTheLargestValueOfAnyListAndKeepsInstancesApart) {
  const unsigned c = 1U << static_cast<unsigned>(ProcessList::compute);
  const unsigned g = 1U << static_cast<unsigned>(ProcessList::graphics);
  std::vector<GpuProcess> processes = {{7, 1, 0, 10, c},           {5, kNoInstance, kNoInstance, 3, c},
                                       {7, 2, 0, 20, c},           {5, kNoInstance, kNoInstance, 4, g},
                                       {6, 1, 0, std::nullopt, c}, {6, 1, 0, 9, g}};
  merge(processes);
  ASSERT_EQ(processes.size(), 4U);
  EXPECT_EQ(processes[0].pid, 5U);
  EXPECT_EQ(processes[0].bytes, 4U);
  EXPECT_EQ(processes[0].kind(), "C+G");
  EXPECT_EQ(processes[1].bytes, 9U) << "known on one list is known";
  EXPECT_EQ(processes[2].bytes, 10U);
  EXPECT_EQ(processes[3].bytes, 20U);
}

}  // namespace
}  // namespace vramtrack::nvml
