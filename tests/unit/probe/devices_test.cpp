#include "probe/devices.hpp"

#include <gtest/gtest.h>

namespace vramtrack::probe {
namespace {

TEST(Devices, OneNumberForOneUuid) {
  const int a = number_of_device("GPU-a", "A", 1);
  const int b = number_of_device("GPU-b", "A", 1);
  EXPECT_GE(a, kFirstNumbered);
  EXPECT_NE(a, b);
  EXPECT_EQ(number_of_device("GPU-a", "A by another API", 2), a);
}

TEST(Devices, WhatCudaNumbersKeepsItsOrdinal) {
  note_ordinal(3, "GPU-c");
  EXPECT_EQ(number_of_device("GPU-c", "C", 1), 3);
}

TEST(Devices, WithoutAUuidNameAndSizeTell) {
  const int a = number_of_device("", "D", 1);
  EXPECT_EQ(number_of_device("", "D", 1), a);
  EXPECT_NE(number_of_device("", "D", 2), a);
}

TEST(Devices, UuidsAreWrittenAsNvmlDoes) {
  const std::uint8_t bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff};
  EXPECT_STREQ(uuid_text(bytes, true).text, "GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
  EXPECT_STREQ(uuid_text(bytes, false).text, "00010203-0405-0607-0809-0a0b0c0d0eff");
}

}  // namespace
}  // namespace vramtrack::probe
