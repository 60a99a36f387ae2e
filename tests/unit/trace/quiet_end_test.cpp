// A rise that ended long before the program: a cache that is full and in use, although all events belong to its rise.
#include <gtest/gtest.h>

#include "probe_script.hpp"
#include "trace/trace_report.hpp"

namespace vramtrack::trace {
namespace {

using probe::Call;
using probe::Record;

/// 64 steps of 100 us each at one line, then whatever the test adds.
struct TracedRun {
  ProbeScript script;
  bool is_python = true;
  std::uint32_t line = 0;
  std::uint64_t next = 1;

  explicit TracedRun(bool python) : is_python(python) {
    line = python ? script.line("/home/me/serve.py", 7) : script.stack({0x5000}, {});
  }
  void keeps(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      script.alloc(next++ << 20U, 1000, line);
      script.now_us += 99;
    }
  }
  /// One buffer in each of `count` turns, replaced by a larger one.
  void enlarges(std::uint64_t steps, std::uint64_t count) {
    for (std::uint64_t i = 0; i < steps; ++i, ++next) {
      script.alloc(next << 20U, 1000 * next, line);
      if (next > count) script.free((next - count) << 20U);
      script.now_us += 98;
    }
  }
  void works(std::uint64_t us) { script.now_us += us; }
  void tells(Record record) { script.put(record, Call::none, 0, 0, 0, probe::when(script.now_us, 0), 0, 0); }
  /// An interpreter releases its memory, which takes `us`.
  void tears_down(std::uint64_t us) {
    tells(Record::end);
    for (std::uint64_t i = 1; i < next; ++i) script.free(i << 20U);
    script.now_us += us;
    tells(Record::exit);
  }
  [[nodiscard]] bool leaks() const {
    ProbeTrace trace;
    replay(trace, script.slots);
    Symbols symbols;
    ProbeNames names(trace, symbols, nullptr, OwnCode());
    return report_of(trace, names).leak;
  }
};

TEST(QuietEnd, AProgramThatWorksOnWithWhatItHasDoesNotLeak) {
  for (const std::uint64_t work_us : {0U, 3'000U, 20'000U, 5'000'000U}) {
    TracedRun run(false);
    run.keeps(64);
    run.works(work_us);
    run.tells(Record::exit);
    EXPECT_EQ(run.leaks(), work_us <= 3'000) << work_us;
  }
}

TEST(QuietEnd, AProgramThatGoesOnIsJudgedUpToTheEndOfTheTracing) {
  for (const bool is_python : {false, true}) {
    for (const std::uint64_t work_us : {0U, 3'000U, 20'000U, 5'000'000U}) {
      TracedRun run(is_python);
      run.keeps(64);
      run.works(work_us);
      run.tells(Record::onward);
      EXPECT_EQ(run.leaks(), work_us <= 3'000) << work_us;
    }
  }
}

TEST(QuietEnd, BuffersThatGrewToTheLargestAreNoLeak) {
  for (const std::uint64_t count : {1U, 2U, 3U}) {
    for (const bool grows_on : {false, true}) {
      TracedRun run(false);
      run.enlarges(60, count);
      if (!grows_on) run.works(30'000);
      run.tells(Record::exit);
      EXPECT_EQ(run.leaks(), grows_on) << count;
    }
  }
}

TEST(QuietEnd, AProgramThatWasKilledIsJudgedByItsEvents) {
  TracedRun run(false);
  run.keeps(64);
  run.works(5'000'000);
  EXPECT_TRUE(run.leaks());
}

TEST(QuietEnd, WhatDestructorsGiveBackEndsTheRun) {
  TracedRun run(false);
  run.keeps(64);
  for (std::uint64_t i = 1; i < run.next; ++i) {
    run.script.free(i << 20U);
    run.works(500);
  }
  run.tells(Record::exit);
  EXPECT_TRUE(run.leaks()) << "the destructors took longer than the run";
}

TEST(QuietEnd, AnInterpretersEndIsToldApartFromQuiet) {
  struct Case {
    const char* what;
    std::uint64_t works_us, handlers_us, teardown_us;
    bool leaks;
  };
  for (const Case& its : {Case{"keeps to the end", 0, 0, 1'000, true},                              //
                          Case{"a slow teardown", 0, 0, 500'000, true},                             //
                          Case{"handlers of atexit three times as slow", 0, 60'000, 20'000, true},  //
                          Case{"an evaluation of a third", 3'000, 0, 1'000, true},                  //
                          Case{"serves for long with a full pool", 60'000, 0, 10'000, false},       //
                          Case{"serves for hours", 7'200'000'000, 2'000'000, 400'000, false}}) {
    TracedRun run(true);
    run.keeps(64);
    run.works(its.works_us + its.handlers_us);
    run.tears_down(its.teardown_us);
    EXPECT_EQ(run.leaks(), its.leaks) << its.what;
  }
}

TEST(QuietEnd, WhereNoEndWasToldAnInterpretersQuietProvesNothing) {
  for (const bool has_exit : {false, true}) {
    TracedRun run(true);
    run.keeps(64);
    run.works(5'000'000);
    if (has_exit) run.tells(Record::exit);
    EXPECT_TRUE(run.leaks()) << "nothing was given back: handlers may have taken all that time";
  }
}

TEST(QuietEnd, ARestOfTheRunWithAllocationsOfOthersIsNotQuietOnly) {
  // The line rose, then others allocated: events show that, whatever the time.
  TracedRun run(false);
  run.keeps(64);
  const std::uint32_t other = run.script.stack({0x6000}, {});
  for (int i = 0; i < 200; ++i) {
    run.script.alloc(1, 10, other);
    run.script.free(1);
  }
  run.tells(Record::exit);
  EXPECT_FALSE(run.leaks());
}

TEST(QuietEnd, ALeakThatPausesOnceIsNamed) {
  TracedRun run(false);
  run.keeps(40);
  run.works(6'000);
  run.keeps(40);
  run.tells(Record::exit);
  EXPECT_TRUE(run.leaks());
}

TEST(QuietEnd, ASlowLeakIsNamedByItsPace) {
  TracedRun run(true);
  for (int i = 0; i < 40; ++i) {
    run.keeps(1);
    run.works(1'000'000);
  }
  run.tears_down(300'000);
  EXPECT_TRUE(run.leaks());
}

TEST(QuietEnd, WhatAPythonProgramGivesBackAfterItsLastAllocationIsItsExit) {
  // The loop ends, and so does the list that kept all of them, or another one that kept a few. Or the program continues
  // and releases a few of them.
  struct Case {
    std::uint64_t given_back;
    std::uint64_t work_us;
    std::int64_t shown_bytes;
  };
  for (const Case& c : {Case{64, 0, 68'000}, Case{9, 0, 68'000}, Case{9, 6'000, 59'000}}) {
    TracedRun run(true);
    run.script.alloc(1, 4000, run.line);  // a model, which the interpreter releases
    run.keeps(64);
    for (std::uint64_t i = 1; i <= c.given_back; ++i) run.script.free(i << 20U);
    run.works(c.work_us);
    run.tells(Record::end);
    run.script.free(1);
    run.tells(Record::exit);
    ProbeTrace trace;
    replay(trace, run.script.slots);
    EXPECT_EQ(trace.processes().front()->live_bytes(MemorySpace::device), c.shown_bytes) << c.given_back;
    EXPECT_TRUE(c.work_us > 0 || run.leaks());
  }
}

TEST(QuietEnd, AListThatEndsWithItsFunctionDoesNotHideOneThatLives) {
  TracedRun run(true);
  const std::uint32_t losses = run.script.line("/home/me/serve.py", 8);
  for (std::uint64_t i = 1; i <= 64; ++i) {
    run.keeps(1);
    run.script.alloc(i << 40U, 30, losses);
  }
  for (std::uint64_t i = 1; i <= 64; ++i) run.script.free(i << 40U);  // 3 % of the live memory
  run.tears_down(10);
  EXPECT_TRUE(run.leaks());
}

TEST(QuietEnd, MarkedEpochsNeedNoClock) {
  TracedRun run(false);
  for (int epoch = 0; epoch < 5; ++epoch) {
    run.script.mark("epoch");
    run.keeps(10);
  }
  run.works(5'000'000);
  run.tells(Record::exit);
  EXPECT_TRUE(run.leaks()) << "the program said what its steps are";
}

}  // namespace
}  // namespace vramtrack::trace
