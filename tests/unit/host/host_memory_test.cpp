// The memory of the machine.
#include "host/host_memory.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vramtrack
