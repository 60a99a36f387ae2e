#include "live/stamps.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace vramtrack {
namespace {

using namespace std::chrono_literals;

const Timestamp kStart{std::chrono::hours{24 * 365 * 56}};

/// A machine with a time of day that can be set.
struct Machine {
  Stamps stamps;
  Timestamp wall = kStart;
  Duration boot{5s};

  Timestamp after(Duration span) {
    pass(span);
    return stamps.next({wall, boot});
  }
  void pass(Duration span) {
    wall += span;
    boot += span;
  }
  /// Starts another run, within the same boot of the machine or after a reboot.
  Timestamp restart(const std::string& boot_id = "boot-1") {
    const ClockMark last = stamps.mark("boot-1");
    stamps = Stamps();
    return stamps.resume(last, {wall, boot}, boot_id);
  }
};

TEST(Stamps, AreTheTimeOfDayWhileNobodySetsIt) {
  Machine machine;
  for (int i = 1; i <= 100; ++i) EXPECT_EQ(machine.after(5s), kStart + i * 5s);
  EXPECT_EQ(machine.stamps.take_news(), "");
}

TEST(Stamps, GoOnAsBeforeWhenTheClockIsSetBack) {
  Machine machine;
  machine.after(5s);
  machine.wall -= 1h;
  EXPECT_EQ(machine.after(5s), kStart + 10s);
  EXPECT_EQ(
      machine.stamps.take_news(),
      "the clock was set back by 1h 00m; timestamps continue from the previous time; to follow the clock, restart "
      "vramtrack 10m from now or later");
  EXPECT_EQ(machine.after(5s), kStart + 15s);
  EXPECT_EQ(machine.stamps.take_news(), "") << "told once";
}

TEST(Stamps, AGlitchOfFiveSecondsShiftsNothing) {
  for (const Duration glitch : {Duration{24h * 365 * 10}, Duration{-24h * 365 * 10}, Duration{2s}, Duration{-2s}}) {
    Machine machine;
    machine.after(5s);
    machine.wall += glitch;
    EXPECT_EQ(machine.after(5s), kStart + 10s);
    machine.wall -= glitch;
    EXPECT_EQ(machine.after(5s), kStart + 15s);
    EXPECT_EQ(machine.stamps.take_news(), "the clock was corrected");
    EXPECT_EQ(machine.after(5s), kStart + 20s);
  }
}

TEST(Stamps, AJumpAheadThatLastsIsBelieved) {
  Machine machine;
  machine.after(5s);
  machine.wall += 24h;
  EXPECT_EQ(machine.after(5s), kStart + 10s);
  EXPECT_EQ(
      machine.stamps.take_news(),
      "the clock was set forward by 24h 00m; timestamps continue from the previous time and follow the clock if it "
      "still differs in 10m");
  for (Duration passed{0}; passed < Stamps::kStable; passed += 5s) machine.after(5s);
  EXPECT_EQ(machine.stamps.take_news(), "timestamps follow the clock again, 24h 00m ahead");
  EXPECT_EQ(machine.after(5s), machine.wall);
}

TEST(Stamps, TheMachineMayHaveSlept) {
  Machine machine;
  machine.after(5s);
  EXPECT_EQ(machine.after(8h), kStart + 5s + 8h) << "the time since boot goes on meanwhile";
  EXPECT_EQ(machine.stamps.take_news(), "");
}

TEST(Stamps, WhatTheNetworksTimeSlewsIsFollowed) {
  Machine machine;
  for (int i = 0; i < 2000; ++i) {
    machine.wall += 2ms;  // 400 ppm of 5 s
    machine.after(5s);
    ASSERT_EQ(machine.stamps.take_news(), "");
  }
  EXPECT_EQ(machine.after(5s), machine.wall);
}

TEST(Stamps, ARestartGoesOnByTheTimeOfDay) {
  Machine machine;
  machine.after(5s);
  machine.pass(3h);
  EXPECT_EQ(machine.restart(), kStart + 5s + 3h);
  EXPECT_EQ(machine.stamps.take_news(), "");
}

/// The case that cost 191 chunks: vramtrack was started in the five seconds in which the clock was wrong.
TEST(Stamps, ARestartInAGlitchGoesOnFromTheLastRun) {
  for (const Duration glitch : {Duration{24h * 365 * 50}, Duration{-24h * 365 * 50}, Duration{3s}}) {
    Machine machine;
    machine.after(5s);
    machine.pass(60s);
    machine.wall += glitch;
    EXPECT_EQ(machine.restart(), kStart + 65s);
    EXPECT_THAT(machine.stamps.take_news(), testing::HasSubstr("timestamps continue from the previous time"));
    machine.wall -= glitch;
    EXPECT_EQ(machine.after(5s), kStart + 70s);
    EXPECT_EQ(machine.stamps.take_news(), "the clock was corrected");
  }
}

TEST(Stamps, ARestartWithinAGlitchOfTheLastRunKeepsItsTime) {
  Machine machine;
  machine.after(5s);
  machine.wall += 24h;
  machine.after(5s);
  machine.pass(60s);
  EXPECT_EQ(machine.restart(), kStart + 70s);
  EXPECT_EQ(machine.stamps.take_news(), "") << "the last run has told it";
  machine.wall -= 24h;
  EXPECT_EQ(machine.after(5s), kStart + 75s);
}

TEST(Stamps, ARestartFollowsAClockThatWasSetBackForLong) {
  Machine machine;
  machine.after(5s);
  machine.wall -= 1h;
  machine.after(5s);
  machine.pass(Stamps::kStable - 1s);
  EXPECT_EQ(machine.restart(), kStart + 10s + Stamps::kStable - 1s) << "not for long yet";
  machine.after(2s);
  EXPECT_EQ(machine.restart(), machine.wall);
  EXPECT_EQ(machine.stamps.take_news(), "");
}

TEST(Stamps, AfterAStartOfTheMachineTheTimeOfDayIsBelieved) {
  Machine machine;
  machine.after(5s);
  machine.wall += 24h;
  machine.pass(60s);
  EXPECT_EQ(machine.restart("boot-2"), machine.wall);
  machine.boot = 1s;
  EXPECT_EQ(machine.restart(), machine.wall) << "no boot goes back";
}

/// Whatever is done to the clock: stamps rise, and never run ahead of the time since boot by more than an offset that
/// has held for kStable.
RC_GTEST_PROP(StampsProperty, AlwaysRise, ()) {
  Machine machine;
  Timestamp last = machine.after(1s);
  const auto jumps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-100'000, 100'000));
  for (const int jump_s : jumps) {
    machine.wall += std::chrono::seconds{jump_s};
    const Timestamp stamp = machine.after(1s);
    RC_ASSERT(stamp > last);
    RC_ASSERT(stamp - last <= 1s + 200ms);
    last = stamp;
  }
}

}  // namespace
}  // namespace vramtrack
