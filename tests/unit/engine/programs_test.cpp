#include "engine/programs.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

constexpr double kDay_s = 86400;

ProgramRun run(double s, double bytes, bool leaked = false) {
  return {s, s, bytes, leaked, false};
}

TEST(Programs, ARunWithinWhatTwoEarlierOnesDidIsLikeThem) {
  Programs programs;
  programs.add("job", {4000, 600, 1e9, false, false});
  EXPECT_FALSE(programs.against_leak("job", run(300, 0.5e9), kDay_s)) << "one tells too little";
  programs.add("job", {4000, 500, 1e9, false, false});
  const auto word = programs.against_leak("job", run(300, 0.5e9), kDay_s);
  ASSERT_TRUE(word);
  EXPECT_EQ(word->runs, 2);
  EXPECT_FALSE(word->ended_long);
  EXPECT_FALSE(programs.against_leak("job", run(300, 2e9), kDay_s)) << "it grows higher";
  EXPECT_FALSE(programs.against_leak("other", run(300, 0.5e9), kDay_s));
}

TEST(Programs, ARunThatWillBeOverBeforeMemoryIsDoesNotLeak) {
  Programs programs;
  for (int i = 0; i < 3; ++i) programs.add("job", {4000, 100, 1e9, false, false});
  const auto word = programs.against_leak("job", run(2000, 0.5e9), kDay_s);
  ASSERT_TRUE(word);
  EXPECT_TRUE(word->ended_long);
  EXPECT_FALSE(programs.against_leak("job", run(2000, 0.5e9), 1000)) << "they lived until then";
  EXPECT_FALSE(programs.against_leak("job", run(2000, 5e9), kDay_s)) << "it is higher than they were";
  EXPECT_TRUE(programs.against_leak("job", {2000, 2000, 5e9, false, true}, kDay_s)) << "and has grown by little";
  EXPECT_FALSE(programs.against_leak("job", run(5000, 0.5e9), kDay_s)) << "it has outlived them";
}

TEST(Programs, RunsThatLeakedSpeakForALeak) {
  Programs programs;
  for (int i = 0; i < 3; ++i) programs.add("job", run(600, 1e9, true));
  for (int i = 0; i < 3; ++i) programs.add("job", run(600, 1e9));
  EXPECT_FALSE(programs.against_leak("job", run(300, 0.5e9), kDay_s));
  programs.add("job", run(600, 1e9));
  EXPECT_TRUE(programs.against_leak("job", run(300, 0.5e9), kDay_s));
}

TEST(Programs, RunsBesideItThatSettledCount) {
  const Programs programs;
  const std::vector<ProgramRun> settled = {{4000, 400, 1e9, false, false}, {4000, 500, 1e9, false, false}};
  EXPECT_TRUE(programs.against_leak("job", run(300, 0.5e9), kDay_s, settled));
  EXPECT_FALSE(programs.against_leak("job", run(3000, 0.5e9), kDay_s, settled));
}

TEST(Programs, ForgetsTheOldest) {
  Programs programs;
  for (int i = 0; i < 100; ++i) programs.add("job", run(600, 1e9));
  EXPECT_EQ(programs.against_leak("job", run(300, 0.5e9), kDay_s)->runs, 64);
  for (int i = 0; i < 600; ++i) programs.add("program " + std::to_string(i), run(600, 1e9));
  EXPECT_FALSE(programs.against_leak("job", run(300, 0.5e9), kDay_s));
}

}  // namespace
}  // namespace vramtrack
