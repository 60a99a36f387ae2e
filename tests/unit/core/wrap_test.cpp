#include "core/wrap.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(Wrap, ALineThatFitsStaysAsItIs) {
  EXPECT_EQ(wrap("  one two\n\nthree\n", 9), "  one two\n\nthree\n");
  EXPECT_EQ(wrap("a line without any end of its own", 0), "a line without any end of its own");
}

TEST(Wrap, BreaksBetweenWordsAndHangsWhatFollows) {
  EXPECT_EQ(wrap("one two three four five", 13), "one two three\n    four five");
}

TEST(Wrap, WhatFollowsHangsUnderTheTextBehindTheLabel) {
  EXPECT_EQ(wrap("    because  the slope is steep enough\n", 26),
            "    because  the slope is\n             steep enough\n");
}

TEST(Wrap, ALongWordStaysWhole) {
  EXPECT_EQ(wrap("/a/very/long/path is here", 8), "/a/very/long/path\n    is\n    here");
}

TEST(Wrap, CountsColumnsAndNotBytes) {
  EXPECT_EQ(wrap("38m–1h 05m", 10), "38m–1h 05m");
  EXPECT_EQ(wrap("\033[1;31mLEAK\033[0m here", 9), "\033[1;31mLEAK\033[0m here");
}

}  // namespace
}  // namespace vramtrack
