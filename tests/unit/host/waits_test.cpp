#include "host/waits.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <string>

namespace vramtrack {
namespace {

std::string call(long number, const std::string& arguments) {
  return std::to_string(number) + ' ' + arguments + " 0x7ffc3973f120 0x7feaf52ed545\n";
}

TEST(Waits, ByTheCallAndItsLimit) {
  const auto has_limit = [](const std::string& text) { return parse_wait(text).value().has_limit; };
  EXPECT_FALSE(has_limit(call(SYS_read, "0x3 0x7f00 0x10 0x0 0x0 0x0")));
  EXPECT_FALSE(has_limit(call(SYS_futex, "0x7fea 0x189 0x0 0x0 0x0 0xffffffff")));
  EXPECT_TRUE(has_limit(call(SYS_futex, "0x7fea 0x89 0x0 0x7feaefffe960 0x0 0xffffffff")));
  EXPECT_TRUE(has_limit(call(SYS_clock_nanosleep, "0x1 0x1 0x7ffc3973f160 0x0 0x0 0x0")));
  EXPECT_FALSE(has_limit(call(SYS_epoll_pwait, "0x4 0x7f00 0x10 0xffffffff 0x0 0x8")));
  EXPECT_TRUE(has_limit(call(SYS_epoll_pwait, "0x4 0x7f00 0x10 0x64 0x0 0x8")));
  EXPECT_FALSE(has_limit(call(SYS_ppoll, "0x7f00 0x2 0x0 0x0 0x0 0x0")));
  EXPECT_TRUE(has_limit(call(SYS_getpid, "0x0 0x0 0x0 0x0 0x0 0x0"))) << "a call that is not known to wait";
}

TEST(Waits, OfAnyFileInSelectPollAndEpoll) {
  EXPECT_TRUE(parse_wait(call(SYS_ppoll, "0x7f00 0x2 0x0 0x0 0x0 0x0"))->is_for_any_file);
  EXPECT_FALSE(parse_wait(call(SYS_read, "0x3 0x7f00 0x10 0x0 0x0 0x0"))->is_for_any_file);
}

TEST(Waits, OneThatRunsWaitsInNoCall) {
  for (const char* text : {"running\n", "-1 0x7ffc3973f120 0x7feaf52ed545\n", "", "7"})
    EXPECT_FALSE(parse_wait(text) && !parse_wait(text)->has_limit) << text;
  EXPECT_FALSE(parse_wait("running\n"));
}

TEST(Waits, OfWhatIsNotThereMayBeAny) {
  EXPECT_TRUE(waits_of("/proc", 0x7fffffff).has_limit);
  EXPECT_TRUE(waits_of("/proc", 0x7fffffff).is_for_any_file);
}

}  // namespace
}  // namespace vramtrack
