#include "top/feed.hpp"

#include <gmock/gmock.h>

#include "../manual_clock.hpp"
#include "../temp_folder.hpp"
#include "live/pipeline.hpp"
#include "report/conclusion_words.hpp"
#include "source/sim/find_scenario.hpp"
#include "source/sim/sim.hpp"
#include "source/tick_reader.hpp"

namespace vramtrack::top {
namespace {

using namespace std::chrono_literals;

sim::Scenario leaking() {
  auto scenario = sim::find_builtin_scenario("leaking_training");
  auto parsed = sim::parse_scenario(scenario->toml, "builtin");
  EXPECT_TRUE(parsed);
  return *parsed;
}

/// A source with a different warning at every poll.
class Talkative final : public Source {
 public:
  explicit Talkative(Catalog& catalog) : used_(catalog.intern({.metric = Metric::device_used, .device_id = "GPU-1"})) {
    catalog.describe(DeviceInfo{.id = "GPU-1", .index = 0, .capacity_bytes = 1ULL << 34U});
  }
  Result<Progress> poll(Timestamp now, Batch& out) override {
    out.samples.push_back({now, used_, 1ULL << 30U});
    notes_.warnings = {"warning " + std::to_string(++polls_)};
    return Progress::more;
  }
  const SourceNotes& notes() const override { return notes_; }

 private:
  SeriesId used_;
  SourceNotes notes_;
  int polls_ = 0;
};

struct LiveRig {
  explicit LiveRig(const Config& config) {
    LoopInput input;
    input.catalog = std::make_unique<Catalog>();
    input.sources.push_back({.name = "talkative", .source = std::make_unique<Talkative>(*input.catalog)});
    source = live_source(config, std::move(input), manual_clock(time));
  }
  void run(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      bool changed = false;
      const SteadyTime next = source.step(time->steady, changed);
      EXPECT_TRUE(changed);
      time->pass(next - time->steady);
    }
  }
  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  TopSource source;
};

Config without_record() {
  Config config;
  config.watch.record = false;
  config.store.path = "/proc/no/store.db";
  return config;
}

TEST(LiveFeed, PollsWhenDueAndNotBefore) {
  LiveRig rig(without_record());
  rig.run(1);
  bool changed = false;
  rig.time->steady -= 1ms;
  const SteadyTime next = rig.source.step(rig.time->steady, changed);
  EXPECT_FALSE(changed);
  EXPECT_EQ(next, rig.time->steady + 1ms);
  EXPECT_EQ(rig.source.view()->series.at(0).samples, 1U);
}

TEST(LiveFeed, ShowsWhatItHasSeen) {
  LiveRig rig(without_record());
  rig.run(5);
  const auto view = rig.source.view();
  const auto points =
      rig.source.feed.history(view->series.at(0).key, *view->series[0].first, *view->series[0].last + 1s, 100);
  std::uint64_t samples = 0;
  for (const Point& point : points) samples += point.samples;
  EXPECT_EQ(samples, 5U);
  Model model;
  rig.source.describe(model);
  EXPECT_EQ(model.mode, Mode::live);
  EXPECT_EQ(model.source, "talkative");
  EXPECT_EQ(model.recording, "");
}

TEST(LiveFeed, AWarningThatIsOverDisappears) {
  LiveRig rig(without_record());
  rig.run(40);
  Model model;
  rig.source.describe(model);
  EXPECT_EQ(model.warnings, std::vector<std::string>{"warning 40"}) << "the source says nothing of the other 39 now";
}

TEST(LiveFeed, RecordsAndTheNextOneKnowsTheAlertsThatEndedWithIt) {
  const TempFolder folder;
  Config config;
  config.store.path = folder.path() + "/top.db";
  {
    // A leak, so that there is an alert: the simulated machine, recorded as if it were this one.
    const auto time = std::make_shared<ManualTime>();
    sim::Scenario scenario = leaking();
    scenario.start = time->wall;
    config.watch.interval_seconds = scenario.period_s;
    LoopInput input;
    input.catalog = std::make_unique<Catalog>();
    input.sources.push_back({.name = "simulation", .source = sim::make_simulation(scenario, *input.catalog)});
    TopSource source = live_source(config, std::move(input), manual_clock(time));
    bool changed = false;
    const auto alerted = [&source] {
      const auto view = source.view();
      return !view->series.empty() && !view->series[0].alerts.empty();
    };
    while (!alerted()) time->pass(source.step(time->steady, changed) - time->steady);
    source.finish();
  }
  LiveRig next(config);
  Model model;
  next.source.describe(model);
  ASSERT_FALSE(model.earlier_alerts.empty());
  EXPECT_EQ(model.earlier_alerts[0].alert.ended, AlertEnd::withdrawn);
  EXPECT_EQ(model.earlier_alerts[0].alert.end_reason, "the watch that raised it has ended");
  EXPECT_TRUE(next.source.feed.history_begin(model.earlier_alerts[0].key));
}

TopSource playback(double speed) {
  PlaybackOptions options;
  options.mode = Mode::simulation;
  options.speed = speed;
  options.open = [](Catalog& catalog) -> Result<std::unique_ptr<Source>> {
    return sim::make_simulation(leaking(), catalog);
  };
  auto source = playback_source({}, std::move(options));
  EXPECT_TRUE(source);
  return std::move(*source);
}

TEST(Playback, JumpsToTheNextAlertAndBack) {
  TopSource source = playback(1);
  const auto jump = [&source](Play where) {
    source.play(where);
    bool changed = false;
    while (source.step(std::chrono::steady_clock::now(), changed) != SteadyTime::max()) {
    }
    return source.view()->time;
  };
  const auto raised = [&source] {
    std::vector<Timestamp> at;
    const auto view = source.view();
    for (const SeriesView& series : view->series)
      for (const Alert& alert : series.alerts) at.push_back(alert.raised);
    return at;
  };
  const Timestamp first = jump(Play::next_alert);
  EXPECT_THAT(raised(), testing::Contains(first));
  const Timestamp second = jump(Play::next_alert);
  EXPECT_GT(second, first);
  EXPECT_EQ(jump(Play::previous_alert), first);
}

TEST(Playback, ARangeWithoutSamplesIsAnError) {
  const Timestamp start = leaking().start.value_or(Timestamp{});
  const auto why = [](TimeRange range) {
    PlaybackOptions options;
    options.name = "leak.db";
    options.range = range;
    options.open = [](Catalog& catalog) { return sim::make_simulation(leaking(), catalog); };
    const auto source = playback_source({}, std::move(options));
    return source ? std::string() : source.error().message;
  };
  EXPECT_EQ(why({start, std::nullopt}), "");
  EXPECT_THAT(
      why({start + 240h, std::nullopt}),
      testing::AllOf(testing::StartsWith("nothing to play in leak.db: it ends at "), testing::HasSubstr(", before ")));
  EXPECT_THAT(why({std::nullopt, start}), testing::StartsWith("nothing to play in leak.db: it begins at "));
}

TEST(Playback, EndsWithItsRecording) {
  TopSource source = playback(65536);
  bool changed = false;
  while (source.step(std::chrono::steady_clock::now(), changed) != SteadyTime::max()) {
  }
  Model model;
  source.describe(model);
  ASSERT_TRUE(model.playback);
  EXPECT_TRUE(model.playback->ended);
  EXPECT_EQ(model.playback->end, source.view()->time);
}

TEST(Playback, HasNotEndedBeforeItsEnd) {
  PlaybackOptions options;
  options.files = {"leak.csv"};
  options.speed = 1;
  options.open = [](Catalog& catalog) -> Result<std::unique_ptr<Source>> {
    return sim::make_simulation(leaking(), catalog);
  };
  auto source = playback_source({}, std::move(options));
  ASSERT_TRUE(source);
  const auto next_steps = [&source] {
    std::string all;
    const auto view = source->view();
    for (const SeriesView& s : view->series) all += conclusion_words(*view, s).next + '\n';
    return all;
  };
  const auto jump = [&source] {
    source->play(Play::next_alert);
    bool changed = false;
    while (source->step(std::chrono::steady_clock::now(), changed) != SteadyTime::max()) {
    }
    Model model;
    source->describe(model);
    return model.playback->ended;
  };
  std::size_t halts = 0;
  for (; !jump(); ++halts) {
    EXPECT_TRUE(source->view()->files.empty()) << "more of it follows, as of a watch";
    EXPECT_THAT(next_steps(), testing::Not(testing::HasSubstr("the recording ended")));
  }
  EXPECT_GT(halts, 0U);
  EXPECT_EQ(source->view()->files, std::vector<std::string>{"leak.csv"});
}

/// Headlines and alerts of every series.
std::vector<std::string> conclusions(const View& view) {
  std::vector<std::string> out;
  for (const SeriesView& s : view.series) {
    out.push_back(conclusion_words(view, s).headline);
    for (const Alert& alert : s.alerts)
      out.push_back(std::string(to_string(alert.finding.stage)) + ' ' + std::string(to_string(alert.ended)));
  }
  return out;
}

TEST(Playback, AtItsEndARecordingIsConcludedAsEverywhere) {
  std::size_t decided_by_the_end = 0;
  for (const sim::BuiltinScenario& builtin : sim::builtin_scenarios()) {
    auto scenario = sim::parse_scenario(builtin.toml, "builtin");
    ASSERT_TRUE(scenario);
    // Programs that are known to train are certain earlier.
    for (auto& process : scenario->processes) process.info.command = "python app.py";
    Catalog catalog;
    const auto recording = sim::make_simulation(*scenario, catalog);
    Pipeline pipeline({}, catalog);
    TickTaker taker;
    taker.begin_anew = [&](const Tick& tick) { pipeline.begin_anew(tick.time); };
    taker.take = [&](const Tick& tick) {
      pipeline.take(tick.batch);
      return true;
    };
    EXPECT_TRUE(read_ticks(*recording, taker).at_end);
    const auto before = conclusions(*pipeline.view());
    pipeline.end_of_recording();
    const auto concluded = conclusions(*pipeline.view());
    if (before != concluded) ++decided_by_the_end;
    for (const bool is_closed : {true, false}) {
      PlaybackOptions options;
      options.speed = 65536;
      options.is_closed = is_closed;
      options.open = [&](Catalog& into) -> Result<std::unique_ptr<Source>> {
        return sim::make_simulation(*scenario, into);
      };
      auto source = playback_source({}, std::move(options));
      ASSERT_TRUE(source);
      bool changed = false;
      while (source->step(std::chrono::steady_clock::now(), changed) != SteadyTime::max()) {
      }
      EXPECT_EQ(conclusions(*source->view()), is_closed ? concluded : before) << builtin.name;
    }
  }
  EXPECT_GT(decided_by_the_end, 0U) << "no scenario is suspected at its end: this test shows nothing";
}

}  // namespace
}  // namespace vramtrack::top
