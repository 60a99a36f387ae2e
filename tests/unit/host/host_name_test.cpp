#include "host/host_name.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace vramtrack {
namespace {

TEST(HostName, IsTheMachines) {
  char expected[256] = {};
  ASSERT_EQ(::gethostname(expected, sizeof expected - 1), 0);
  EXPECT_EQ(host_name(), expected);
}

}  // namespace
}  // namespace vramtrack
