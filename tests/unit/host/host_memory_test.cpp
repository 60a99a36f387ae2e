// Host memory: of the machine, of a process, and within a cgroup.
#include "host/host_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

TEST(HostMemory, TotalAndAvailable) {
  const auto memory = parse_meminfo("MemTotal:        1024 kB\nMemFree: 1 kB\nMemAvailable:     512 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total_bytes, 1024U * 1024);
  EXPECT_EQ(memory->available_bytes, 512U * 1024);
}

TEST(HostMemory, WhatIsMissingOrNonsenseIsNothing) {
  for (const char* const bad :
       {"", "MemTotal: 1024 kB\n", "MemAvailable: 1 kB\n", "MemTotal: 0 kB\nMemAvailable: 0 kB\n",
        "MemTotal: x kB\nMemAvailable: 1 kB\n", "MemTotal: 5 MB\nMemAvailable: 1 kB\n",
        "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB\n"})
    EXPECT_FALSE(parse_meminfo(bad)) << bad;
  EXPECT_EQ(parse_meminfo("MemTotal: 4 kB\nMemAvailable: 8 kB\n")->available_bytes, 4096U);
}

TEST(HostMemory, OfAProcessThePagesOfFilesAreNotAnonymous) {
  const auto memory = parse_process_memory(
      "Name:\tpython\nVmPin:\t   64 kB\nVmRSS:\t  1000 kB\nRssAnon:\t   300 kB\nRssFile:\t   600 kB\n"
      "RssShmem:\t   100 kB\nVmSwap:\t    50 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->anonymous_bytes, 450U * 1024) << "anonymous, shared and swapped out";
  EXPECT_EQ(memory->resident_bytes, 1000U * 1024);
  EXPECT_EQ(memory->pinned_bytes, 64U * 1024);
  EXPECT_FALSE(parse_process_memory("Name:\tkthreadd\n")) << "a kernel thread has none";
  EXPECT_FALSE(parse_process_memory("VmRSS:\t 1000 kB\n")) << "a kernel before 4.5 does not tell";
  EXPECT_FALSE(parse_process_memory("RssAnon:\t x kB\n"));
}

TEST(HostMemory, FoldersOfACgroup) {
  using Folders = std::vector<std::string>;
  EXPECT_EQ(cgroup_folders("/a/b"), (Folders{"/a/b", "/a", ""}));
  EXPECT_EQ(cgroup_folders("/"), Folders{""});
  for (const char* const bad : {"", "a", "/a/../b", "/.."}) EXPECT_TRUE(cgroup_folders(bad).empty()) << bad;
}

class HostLimitTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder.file(path)).parent_path());
    std::ofstream(folder.file(path)) << text;
  }
  HostLimit read(const std::string& cgroup, std::uint64_t swap = 0) const {
    return read_host_limit(folder.file(""), cgroup, {100'000, 40'000, swap});
  }
  TempFolder folder;
};

TEST_F(HostLimitTest, WithoutALimitTheMachineEndsIt) {
  write("a/memory.max", "max\n");
  const HostLimit limit = read("/a", 5'000);
  EXPECT_EQ(limit.name, "the machine's memory");
  EXPECT_EQ(limit.bytes, 100'000U);
  EXPECT_EQ(limit.available_bytes, 45'000U);
}

TEST_F(HostLimitTest, TheNearestEndsIt) {
  write("a/memory.max", "50000\n");
  write("a/memory.current", "45000\n");
  write("a/memory.stat", "anon 20000\nfile 25000\ninactive_file 10000\nactive_file 5000\nunevictable 0\n");
  write("a/b/memory.max", "30000\n");
  write("a/b/memory.current", "1000\n");
  HostLimit limit = read("/a/b");
  EXPECT_EQ(limit.name, "memory.max of /a") << "20,000 are left there, and 29,000 in its own";
  EXPECT_EQ(limit.available_bytes, 20'000U) << "caches give way";
  write("a/memory.swap.max", "3000\n");
  write("a/memory.swap.current", "1000\n");
  EXPECT_EQ(read("/a/b", 50'000).available_bytes, 22'000U);
  write("a/memory.max", "900000\n");
  EXPECT_EQ(read("/a/b").name, "memory.max of /a/b") << "more than the machine has is no limit";
  write("a/b/memory.current", "99999\n");
  EXPECT_EQ(read("/a/b").available_bytes, 0U);
}

}  // namespace
}  // namespace vramtrack
