// A program that caught an out-of-memory error and still holds memory: it is reported, and again when another program
// fails because of it.
#include <gmock/gmock.h>

#include "one_gpu.hpp"
#include "report/report.hpp"
#include "report/status.hpp"

namespace vramtrack {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

class StillHoldingTest : public OneGpu {
 protected:
  void ran_out(double t, std::uint32_t pid) {
    Batch batch;
    Event event;
    event.time = at(t);
    event.kind = Event::Kind::out_of_memory;
    event.device_id = "GPU-a";
    event.pid = pid;
    event.pid_start_ticks = pid == 0 ? 0 : 1000 + pid;
    event.text = "CUDA out of memory";
    batch.events.push_back(event);
    engine->ingest(batch);
  }
  /// From `from_s` on, the first process holds `bytes`, of which its allocator uses 1 GiB; the second one, if present,
  /// holds 1 GiB.
  void hold(double from_s, double to_s, std::uint64_t bytes, bool second = false) {
    for (double t = from_s; t < to_s; t += 10) {
      std::vector<std::pair<SeriesId, std::uint64_t>> all = {{first, bytes}, {reserved, bytes}, {allocated, kGiB}};
      if (second) all.emplace_back(other, kGiB);
      tick(t, bytes + (second ? 2 : 1) * kGiB, all);
    }
  }
  void SetUp() override {
    first = process(1, "python comfy.py");
    other = process(2, "python second.py");
    reserved = catalog.intern({Metric::allocator_reserved, "GPU-a", 1, 1001});
    allocated = catalog.intern({Metric::allocator_allocated, "GPU-a", 1, 1001});
    start();
  }
  SeriesId first{}, other{}, reserved{}, allocated{};
};

TEST_F(StillHoldingTest, WhatItHoldsAndHowMuchOfThatItsAllocatorDoesNotUse) {
  hold(0, 600, 21 * kGiB);
  ran_out(595, 1);
  EXPECT_FALSE(seen(first).still_holds) << "it may end for it";
  hold(600, 700, 21 * kGiB);
  const auto holds = seen(first).still_holds;
  ASSERT_TRUE(holds);
  EXPECT_EQ(holds->ran_out, at(595));
  EXPECT_EQ(holds->unused_bytes, 20 * kGiB);
  const ConclusionWords told = told_of(first);
  EXPECT_THAT(told.facts, Contains(Field(&Fact::text, HasSubstr("still holds 21.0 GiB, 20.0 GiB of them unused by its "
                                                                "allocator"))));
  EXPECT_THAT(told.facts, Contains(Field(&Fact::text, HasSubstr("next: call torch.cuda.empty_cache()"))));
}

TEST_F(StillHoldingTest, EveryTextTellsIt) {
  hold(0, 600, 21 * kGiB);
  ran_out(595, 1);
  hold(600, 700, 21 * kGiB);
  const auto view = engine->view();
  for (const std::string& text : {find_report("text")->render(*view, {}), status_table(*view, {}, 0)}) {
    EXPECT_THAT(text, HasSubstr("still holds 21.0 GiB, 20.0 GiB of them unused by its allocator"));
    EXPECT_THAT(text, HasSubstr("next: call torch.cuda.empty_cache()"));
  }
}

TEST_F(StillHoldingTest, OneThatNoMessageNamesIsNotGuessed) {
  hold(0, 600, 21 * kGiB);
  ran_out(595, 0);
  hold(600, 700, 21 * kGiB);
  EXPECT_FALSE(seen(first).still_holds) << "it may hold all it ever needed";
}

TEST_F(StillHoldingTest, OneThatFreedItOrEndedHoldsNothing) {
  hold(0, 600, 21 * kGiB);
  ran_out(595, 1);
  hold(600, 700, 2 * kGiB);
  EXPECT_FALSE(seen(first).still_holds);
  hold(700, 800, 21 * kGiB);
  end_process(800, 1);
  EXPECT_FALSE(seen(first).still_holds);
}

TEST_F(StillHoldingTest, ASecondRunThatFailsIsToldWhatTheFirstLeft) {
  hold(0, 600, 21 * kGiB);
  ran_out(595, 1);
  hold(600, 800, 21 * kGiB, true);
  end_process(800, 2, true);
  EXPECT_THAT(seen(other).verdict.finding.because, HasSubstr("pid 1, whose memory had run out at"));
  EXPECT_THAT(seen(other).verdict.finding.because, HasSubstr("still held 21.0 GiB then"));
}

TEST_F(StillHoldingTest, OneThatFailsByItselfIsNot) {
  hold(0, 600, 21 * kGiB, true);
  end_process(600, 2, true);
  EXPECT_THAT(seen(other).verdict.finding.because, Not(HasSubstr("still held")));
}

class MarksTest : public OneGpu {
 protected:
  void mark(double t, const std::string& text) {
    Batch batch;
    Event event;
    event.time = at(t);
    event.kind = Event::Kind::mark;
    event.pid = 1;
    event.pid_start_ticks = 1001;
    event.text = text;
    batch.events.push_back(event);
    engine->ingest(batch);
  }
};

TEST_F(MarksTest, GrowthFromOneToTheNext) {
  const SeriesId server = process(1, "llama-server");
  start();
  for (double t = 0; t < 7200; t += 10) {
    const std::uint64_t used = 2 * kGiB + static_cast<std::uint64_t>(t) * kMiB;
    tick(t, used + kGiB, {{server, used}});
    mark(t, "step=" + std::to_string(static_cast<int>(t / 5)));  // two steps per tick: 5 MiB each
    if (static_cast<int>(t) % 100 == 0) mark(t, "epoch");
  }
  const auto growth = seen(server).mark_growth;
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->name, "step");
  EXPECT_EQ(growth->last, 1438U);
  EXPECT_NEAR(growth->bytes_per_mark, 5.0 * kMiB, 0.1 * kMiB);
}

TEST_F(MarksTest, MarksThatBeginLongAfterTheGrowthAreMeasuredAlone) {
  const SeriesId server = process(1, "llama-server");
  start();
  for (double t = 0; t < 7200; t += 10) {
    const std::uint64_t used = 2 * kGiB + static_cast<std::uint64_t>(t) * kMiB;
    tick(t, used + kGiB, {{server, used}});
    if (t == 7000) {
      EXPECT_FALSE(seen(server).mark_growth);
    }
    if (t >= 7000) mark(t, "step=" + std::to_string(static_cast<int>(t / 10)));  // 10 MiB each
  }
  const auto growth = seen(server).mark_growth;
  ASSERT_TRUE(growth);
  EXPECT_NEAR(growth->bytes_per_mark, 10.0 * kMiB, 0.5 * kMiB);
}

TEST_F(MarksTest, AProcessThatDoesNotGrowGrowsByNothing) {
  const SeriesId server = process(1, "llama-server");
  start();
  for (double t = 0; t < 3600; t += 10) {
    tick(t, 3 * kGiB, {{server, 2 * kGiB}});
    mark(t, "request");
  }
  const auto growth = seen(server).mark_growth;
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->last, 360U);
  EXPECT_EQ(growth->bytes_per_mark, 0);
}

}  // namespace
}  // namespace vramtrack
