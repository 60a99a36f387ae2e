#include "core/driver_share.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(DriverShare, IsAFixedLeastOrAShareOfTheCapacity) {
  EXPECT_EQ(driver_share_bytes({}), 768 * kMiB);
  EXPECT_EQ(driver_share_bytes(24 * kBytesPerGiB), 768 * kMiB);
  EXPECT_DOUBLE_EQ(driver_share_bytes(141 * kBytesPerGiB), 1.41 * kGiB);
}

}  // namespace
}  // namespace vramtrack
