#include "core/errno_words.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace vramtrack {
namespace {

TEST(ErrnoWords, NameTheErrorAndLeaveErrnoAlone) {
  errno = EINTR;
  EXPECT_EQ(errno_words(ENOENT), "No such file or directory");
  EXPECT_NE(errno_words(123456), "");
  EXPECT_EQ(errno, EINTR);
}

}  // namespace
}  // namespace vramtrack
