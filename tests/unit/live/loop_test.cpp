#include "live/loop.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "../manual_clock.hpp"
#include "../temp_folder.hpp"
#include "core/event_words.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// Counts its polls; fails, warns and ends as the test requires.
class FakeSource final : public Source {
 public:
  explicit FakeSource(Catalog& catalog) {
    catalog.describe(DeviceInfo{.id = "GPU-1", .index = 0, .capacity_bytes = 1ULL << 34U});
    used_ = catalog.intern({.metric = Metric::device_used, .device_id = "GPU-1"});
  }
  Result<Progress> poll(Timestamp now, Batch& out) override {
    ++polls;
    if (!error.empty()) return fail(error);
    out.samples.push_back({now, used_, 1ULL << 30U});
    if (takes) time->pass(*takes);
    return Progress::more;
  }
  const SourceNotes& notes() const override { return notes_; }

  int polls = 0;
  std::string error;
  std::optional<Duration> takes;
  std::shared_ptr<ManualTime> time;
  SourceNotes notes_;

 private:
  SeriesId used_{};
};

struct Heard {
  std::vector<std::string> warnings;
  std::vector<std::string> events;
  std::vector<std::string> alerts;
  int ticks = 0;

  Listener listener() {
    Listener listener;
    listener.warning = [this](const std::string& text) { warnings.push_back(text); };
    listener.event = [this](const Event& event) {
      if (is_for_people(event)) events.push_back(event.text);
    };
    listener.alert = [this](const AlertNotice& told) { alerts.emplace_back(to_string(told.news)); };
    listener.tick = [this](const Batch&) { ++ticks; };
    return listener;
  }
};

struct Rig {
  Rig() {
    config.watch.interval_seconds = 5;
    LoopInput input;
    input.catalog = std::make_unique<Catalog>();
    auto made = std::make_unique<FakeSource>(*input.catalog);
    source = made.get();
    source->time = time;
    input.sources.push_back(LiveSource{.name = "fake", .source = std::move(made)});
    loop = std::make_unique<Loop>(config, std::move(input), manual_clock(time));
    loop->pipeline().listen(heard.listener());
  }
  void run(int ticks) {
    for (int i = 0; i < ticks && loop->clock().sleep_until(loop->next()); ++i) loop->tick();
  }

  Config config;
  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  FakeSource* source = nullptr;
  std::unique_ptr<Loop> loop;
  Heard heard;
};

TEST(Loop, PollsAtOnceAndThenEveryInterval) {
  Rig rig;
  const Timestamp begin = rig.time->wall;
  rig.run(4);
  EXPECT_EQ(rig.source->polls, 4);
  EXPECT_EQ(rig.heard.ticks, 4);
  EXPECT_EQ(rig.time->wall, begin + 15s);
  EXPECT_EQ(rig.loop->cost().samples, 4U);
  EXPECT_EQ(rig.loop->cost().late_polls, 0U);
  EXPECT_EQ(rig.loop->pipeline().view()->series.at(0).used_bytes, 1ULL << 30U);
}

TEST(Loop, EndsWhenItsClockIsAskedTo) {
  Rig rig;
  rig.time->asked_to_end = true;
  rig.run(4);
  EXPECT_EQ(rig.source->polls, 0);
}

TEST(Loop, MissedTicksAreNotMadeUpFor) {
  Rig rig;
  rig.source->takes = 12s;
  rig.run(1);
  EXPECT_EQ(rig.loop->next() - SteadyTime{}, 15s);
  rig.source->takes.reset();
  rig.time->pass(6s);  // another process held the processor
  rig.loop->tick();
  EXPECT_EQ(rig.loop->cost().late_polls, 1U);
  EXPECT_EQ(rig.loop->next() - SteadyTime{}, 20s);
}

TEST(Loop, AnotherIntervalHoldsFromTheNextTickOn) {
  Rig rig;
  rig.run(1);
  rig.loop->set_interval(1);
  rig.run(2);
  EXPECT_EQ(rig.loop->next() - SteadyTime{}, 7s);
}

TEST(Loop, TellsOnceThatASourceFailsAndAnswersAgain) {
  Rig rig;
  rig.source->error = "the driver is gone";
  rig.run(3);
  rig.source->error.clear();
  rig.source->notes_.warnings = {"one process is not visible"};
  rig.run(3);
  EXPECT_THAT(rig.heard.warnings,
              ElementsAre("fake: the driver is gone", "fake answers again", "one process is not visible"));
  EXPECT_EQ(rig.loop->cost().sources.at(0).failed_polls, 3U);
  EXPECT_EQ(rig.loop->cost().sources.at(0).polls, 6U);
}

TEST(Loop, AClockThatJumpsIsAnEventAndMovesNoSample) {
  Rig rig;
  rig.run(2);
  rig.time->wall += 24h * 365;
  rig.run(1);
  EXPECT_THAT(rig.heard.events, ElementsAre(testing::HasSubstr("the clock was set forward by 365d 00h")));
  EXPECT_EQ(rig.loop->pipeline().view()->time, rig.loop->started() + 10s);
}

TEST(Loop, RecordsWhatItPolls) {
  const TempFolder folder;
  Rig rig;
  StoreConfig store;
  store.path = folder.path() + "/watch.db";
  ASSERT_TRUE(rig.loop->record_into(store));
  rig.run(3);
  rig.loop->finish();
  auto reader = StoreReader::open(store.path);
  ASSERT_TRUE(reader) << reader.error().message;
  Catalog catalog;
  std::size_t samples = 0;
  for (bool more = true; more;) {
    Batch batch;
    const auto read = (*reader)->read(catalog, batch);
    ASSERT_TRUE(read) << read.error().message;
    samples += batch.samples.size();
    more = *read;
  }
  EXPECT_EQ(samples, 3U);
}

TEST(Loop, GoesOnWithoutAStoreThatCannotBeOpened) {
  Rig rig;
  StoreConfig store;
  store.path = "/proc/no/store.db";
  EXPECT_FALSE(rig.loop->record_into(store));
  rig.run(1);
  EXPECT_EQ(rig.heard.ticks, 1);
  ASSERT_EQ(rig.heard.warnings.size(), 1U);
  EXPECT_THAT(rig.heard.warnings[0], testing::HasSubstr("pass --no-record to silence this"));
}

/// A simulation is the same loop on a faster clock; at its end it starts again, without any history.
TEST(Loop, RunsASimulationAgainAndAgain) {
  auto scenario = sim::parse_scenario(sim::builtin_scenarios().front().toml, "builtin");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto time = std::make_shared<ManualTime>();
  scenario->start = time->wall;
  LoopInput input;
  input.catalog = std::make_unique<Catalog>();
  input.sources.push_back({.name = "simulation", .source = sim::make_simulation(*scenario, *input.catalog)});
  int runs = 1;
  input.again = [&](Timestamp start, Catalog& catalog) {
    ++runs;
    scenario->start = start;
    return sim::make_simulation(*scenario, catalog);
  };
  Loop loop({}, std::move(input), compressed(manual_clock(time), 3600));
  loop.set_interval(scenario->period_s);
  Heard heard;
  loop.pipeline().listen(heard.listener());
  const Timestamp begin = time->wall;
  while (runs < 3 && loop.clock().sleep_until(loop.next())) loop.tick();
  const double simulated_s = seconds_between(loop.started(), loop.now());
  EXPECT_NEAR(simulated_s, 2 * (scenario->duration_s + scenario->period_s), 2 * scenario->period_s);
  EXPECT_NEAR(seconds_between(begin, time->wall), simulated_s / 3600, 1);
  const auto raised = std::count(heard.alerts.begin(), heard.alerts.end(), "raised");
  EXPECT_EQ(raised, 4) << "each run raises the alerts of the device and of its process";
  EXPECT_EQ(loop.pipeline().counts().raised, 2) << "to people they are one";
}

TEST(Loop, ASimulationBeginsWithItsWatch) {
  auto scenario = sim::parse_scenario(sim::builtin_scenarios().front().toml, "builtin");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto time = std::make_shared<ManualTime>();
  LoopInput input;
  input.catalog = std::make_unique<Catalog>();
  input.sources.push_back({.name = "simulation"});
  input.again = [&](Timestamp start, Catalog& catalog) {
    scenario->start = start;
    return sim::make_simulation(*scenario, catalog);
  };
  Loop loop({}, std::move(input), compressed(manual_clock(time), 3600));
  std::optional<Timestamp> first;
  Listener listener;
  listener.tick = [&](const Batch& batch) {
    if (!first && !batch.samples.empty()) first = batch.samples.front().time;
  };
  loop.pipeline().listen(std::move(listener));
  time->wall += std::chrono::seconds{2};  // as opening a store takes
  loop.tick();
  EXPECT_EQ(first, loop.started()) << "a sample before its watch would be another watch's";
}

/// A program that ran between two readings of the machine's clocks does not make a fast clock jump.
TEST(Loop, AFastClockDoesNotJumpByItself) {
  Rig rig;
  rig.time->reading_takes = 20ms;
  LoopInput input;
  input.catalog = std::make_unique<Catalog>();
  input.sources.push_back({.name = "fake", .source = std::make_unique<FakeSource>(*input.catalog)});
  Loop loop(rig.config, std::move(input), compressed(manual_clock(rig.time), 3600));
  Heard heard;
  loop.pipeline().listen(heard.listener());
  for (int i = 0; i < 100; ++i) loop.tick();
  EXPECT_THAT(heard.events, testing::IsEmpty());
}

TEST(Sources, WarningsThatNoLongerStandAreForgotten) {
  SourceNotes notes;
  std::set<std::string> told;
  int warned = 0;
  const Warn warn = [&warned](const std::string&) { ++warned; };
  for (int i = 0; i < 1000; ++i) {
    notes.warnings = {"always", "figure " + std::to_string(i)};
    report_new(notes, told, warn);
    ASSERT_LE(told.size(), 257U);
  }
  EXPECT_EQ(warned, 1001) << "what stands is told once, however many others come and go";
}

TEST(Clock, DeadlinesAreStepsOfTheIntervalAfterNow) {
  const SteadyTime zero{};
  EXPECT_EQ(next_deadline(zero, 5s, zero), zero + 5s);
  EXPECT_EQ(next_deadline(zero, 5s, zero + 4s), zero + 5s);
  EXPECT_EQ(next_deadline(zero, 5s, zero + 5s), zero + 10s);
  EXPECT_EQ(next_deadline(zero, 5s, zero + 23s), zero + 25s);
}

TEST(Clock, CompressedTimePassesFaster) {
  const auto time = std::make_shared<ManualTime>();
  const Clock fast = compressed(manual_clock(time), 60);
  const Timestamp wall = fast.read().wall;
  ASSERT_TRUE(fast.sleep_until(fast.steady() + 1h));
  EXPECT_EQ(time->boot, Duration{1h} + 1min);
  EXPECT_EQ(fast.read().wall - wall, 1h);
  EXPECT_EQ(fast.read().since_boot, 2h);
}

}  // namespace
}  // namespace vramtrack
