// The promises of the generated traces: the same seed gives the same trace, the labels are true, and data about earlier
// runs was available in time.
#include "families.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "again.hpp"
#include "past.hpp"
#include "play.hpp"
#include "source/sim/sim.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

/// A scenario played without a judge.
struct Outcome {
  std::vector<std::pair<std::uint32_t, double>> out_of_memory;  ///< pid and time
  double highest_share = 0;                                     ///< share of the capacity of its fullest device
  std::vector<Point> points;                                    ///< points of the first device
};

Outcome play_alone(const sim::Scenario& scenario) {
  Outcome outcome;
  Catalog catalog;
  const auto source = sim::make_simulation(scenario, catalog);
  const auto capacity = static_cast<double>(scenario.devices.front().capacity_bytes);
  for (;;) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    for (const Event& e : batch.events)
      if (e.kind == Event::Kind::process_ended && e.ran_out_of_memory)
        outcome.out_of_memory.emplace_back(e.pid, seconds_between(Timestamp{}, e.time));
    for (const Sample& s : batch.samples) {
      const SeriesKey& key = catalog.key(s.series);
      if (key.metric != Metric::device_used) continue;
      outcome.highest_share = std::max(outcome.highest_share, static_cast<double>(s.bytes) / capacity);
      if (key.device_id == catalog.devices().front().id)
        outcome.points.push_back({seconds_between(Timestamp{}, s.time), static_cast<double>(s.bytes)});
    }
    if (!progress || *progress == Progress::end) break;
  }
  return outcome;
}

sim::Scenario scenario_of(const Trace& trace) {
  if (trace.scenario) return *trace.scenario;
  auto scenario = sim::parse_scenario(trace.toml, trace.family);
  EXPECT_TRUE(scenario) << trace.family << ": " << scenario.error().message;
  return *scenario;
}

std::vector<const Family*> all_families() {
  std::vector<const Family*> all;
  for (const auto& some : {families(), rank_families(), crash_families(), part_families()})
    for (const Family& family : some) all.push_back(&family);
  return all;
}

/// The one with the fewest samples among the first twelve.
Trace short_trace(std::string_view family) {
  std::optional<Trace> shortest;
  double fewest = 0;
  for (std::uint64_t i = 0; i < 12; ++i) {
    Trace trace = make_trace(*find_family(family), Split::tune, 1, i);
    const sim::Scenario scenario = scenario_of(trace);
    const double ticks = scenario.duration_s / scenario.period_s;
    if (shortest && ticks >= fewest) continue;
    fewest = ticks;
    shortest = std::move(trace);
  }
  return *shortest;
}

TEST(AccuracyFamilies, TheSameSeedGivesTheSameTraceAndEachNameIsFound) {
  std::set<std::string_view> names;
  for (const Family* family : all_families()) {
    EXPECT_TRUE(names.insert(family->name).second) << family->name;
    EXPECT_EQ(find_family(family->name), family);
    for (const Split split : {Split::tune, Split::test}) {
      const Trace trace = make_trace(*family, split, 1, 0);
      EXPECT_EQ(trace.toml, make_trace(*family, split, 1, 0).toml) << family->name;
      EXPECT_NE(trace.toml, make_trace(*family, split, 1, 1).toml) << family->name;
      EXPECT_NE(trace.toml, make_trace(*family, split, 2, 0).toml) << family->name;
      EXPECT_EQ(trace.label.leak, family->leak) << family->name;
    }
  }
  EXPECT_EQ(find_family("no such family"), nullptr);
}

TEST(AccuracyFamilies, EnoughAreByOtherHands) {
  int healthy = 0;
  int leaking = 0;
  for (const Family& family : families()) {
    if (family.group != Group::others) continue;
    (family.leak ? leaking : healthy) += 1;
  }
  EXPECT_GE(healthy, 10);
  EXPECT_GE(leaking, 8);
}

TEST(AccuracyFamilies, HealthyProgramsNeverRunOutOfMemory) {
  for (const Family* family : all_families()) {
    if (family->leak) continue;
    for (const Split split : {Split::tune, Split::test})
      EXPECT_TRUE(play_alone(scenario_of(make_trace(*family, split, 5, 0))).out_of_memory.empty()) << family->name;
  }
}

/// Leaks with a trace made to end before memory does, or with a last step that may be too large, or beside a program
/// that may be the one that requests too much.
bool may_end_before(std::string_view family) {
  return family == "slow" || family == "reported_rate" || family == "caught_oom" || family == "tenants_beside";
}

TEST(AccuracyFamilies, LeaksEndAtTheCapacityAndNotBeforeTheirOnset) {
  for (const Family* family : all_families()) {
    if (!family->leak || family->group == Group::parts) continue;
    int ended = 0;
    constexpr int kTraces = 2;
    for (std::uint64_t i = 0; i < kTraces; ++i) {
      const Trace trace = make_trace(*family, Split::tune, 6, i);
      const Outcome outcome = play_alone(scenario_of(trace));
      for (const auto& [pid, time_s] : outcome.out_of_memory) {
        EXPECT_GT(time_s, trace.label.onset_s) << family->name;
        // The last rise may begin and end between two samples.
        EXPECT_GT(outcome.highest_share, family->name == "floor_only" ? 0.5 : 0.8) << family->name;
      }
      ended += std::any_of(outcome.out_of_memory.begin(), outcome.out_of_memory.end(),
                           [&](const auto& end) { return end.first == trace.label.suspect_pid; });
    }
    if (!may_end_before(family->name)) {
      EXPECT_GE(ended, kTraces - 1) << family->name;
    }
  }
}

TEST(AccuracyFamilies, WithoutTheirLeakTheyAreHealthy) {
  for (const auto& some : {families(), rank_families()})
    for (const Family& family : some) {
      if (!family.leak) continue;
      const Outcome outcome = play_alone(without_leak(scenario_of(make_trace(family, Split::tune, 7, 0))));
      EXPECT_TRUE(outcome.out_of_memory.empty()) << family.name;
    }
}

TEST(AccuracyFamilies, AProgramThatIsStartedAgainLeaksAgain) {
  const Trace trace = short_trace("crash_and_restart");
  ASSERT_TRUE(trace.restart_after_s);
  const Outcome outcome = play_alone(scenario_of(trace));
  // A neighbour may also die from it.
  const auto ends = [&](std::uint32_t pid) {
    return std::count_if(outcome.out_of_memory.begin(), outcome.out_of_memory.end(),
                         [pid](const auto& end) { return end.first == pid; });
  };
  EXPECT_EQ(ends(kVictim), 1);
  EXPECT_EQ(ends(kVictim + 1000), 1);
  EXPECT_GT(outcome.points.back().t_s, outcome.out_of_memory[0].second);
}

TEST(AccuracyFamilies, AStraightRiseBeyondHalfIsOneInTheSamples) {
  int seen = 0;
  for (std::uint64_t i = 0; i < 8; ++i) {
    const Trace trace = make_trace(*find_family("replay_buffer"), Split::tune, 3, i);
    const Outcome outcome = play_alone(scenario_of(trace));
    double highest = 0;
    for (const Point& p : outcome.points) highest = std::max(highest, p.used_bytes);
    const double first = outcome.points[outcome.points.size() / 50].used_bytes;
    const double taken = (highest - first) / (trace.capacity_bytes - first);
    if (beyond_half(trace)) {
      EXPECT_GT(taken, 0.4) << i;
    }
    if (trace.straight_share < 0.3) {
      EXPECT_LT(taken, 0.6) << i;
    }
    seen += beyond_half(trace) ? 1 : 0;
  }
  EXPECT_GT(seen, 0);
  Trace leak;
  leak.label.leak = true;
  leak.straight_share = 0.9;
  EXPECT_FALSE(beyond_half(leak)) << "of healthy traces alone";
}

TEST(AccuracyAgain, EarlierRunsDifferALittleAndComeFromTheSeed) {
  const Trace trace = make_trace(*find_family("warm_up_linear"), Split::tune, 1, 0);
  const sim::Scenario original = scenario_of(trace);
  const sim::Scenario first = *earlier_run(trace, Earlier::healthy, 0).scenario;
  const sim::Scenario again = *earlier_run(trace, Earlier::healthy, 0).scenario;
  const sim::Scenario second = *earlier_run(trace, Earlier::healthy, 1).scenario;
  EXPECT_EQ(first.seed, again.seed);
  EXPECT_EQ(first.duration_s, again.duration_s);
  EXPECT_NE(first.seed, second.seed);
  EXPECT_NE(first.duration_s, second.duration_s);
  ASSERT_EQ(first.processes.size(), original.processes.size());
  for (std::size_t p = 0; p < first.processes.size(); ++p) {
    EXPECT_EQ(first.processes[p].info.command, original.processes[p].info.command);
    for (std::size_t i = 0; i < first.processes[p].shapes.size(); ++i)
      for (std::size_t v = 0; v < first.processes[p].shapes[i].values.size(); ++v) {
        const double was = original.processes[p].shapes[i].values[v];
        EXPECT_NEAR(first.processes[p].shapes[i].values[v], was, 0.16 * std::abs(was) + 1e-9);
      }
  }
}

TEST(AccuracyAgain, TheLabelFollowsThePaceOfTheRun) {
  Trace trace = make_trace(*find_family("late"), Split::tune, 1, 0);
  const Trace run = this_run(trace);
  ASSERT_GT(trace.label.onset_s, 0);
  EXPECT_NE(run.label.onset_s, trace.label.onset_s);
  EXPECT_NEAR(run.label.onset_s / trace.label.onset_s, run.label.life_s / trace.label.life_s, 1e-9);
  const Outcome outcome = play_alone(*run.scenario);
  ASSERT_FALSE(outcome.out_of_memory.empty());
  const double life_s = outcome.out_of_memory.front().second - run.label.onset_s;
  EXPECT_NEAR(life_s / run.label.life_s, 1, 0.35);
}

TEST(AccuracyAgain, EarlierRunsOfALeakAreHealthyOrLeakAsAsked) {
  const Trace trace = short_trace("from_start");
  EXPECT_TRUE(play_alone(*earlier_run(trace, Earlier::healthy, 0).scenario).out_of_memory.empty());
  int ended = 0;
  for (std::size_t i = 0; i < 6; ++i)
    ended += play_alone(*earlier_run(trace, Earlier::leaked, i).scenario).out_of_memory.empty() ? 0 : 1;
  EXPECT_GT(ended, 0);
}

TEST(AccuracyAgain, SiblingsHaveDevicesAndPidsOfTheirOwn) {
  const Trace trace = short_trace("from_start");
  const Trace job = with_siblings(trace, 3, false);
  ASSERT_EQ(job.scenario->devices.size(), 4U);
  std::set<std::string> ids;
  for (const sim::DeviceSpec& device : job.scenario->devices) ids.insert(device.info.id);
  EXPECT_EQ(ids.size(), 4U);
  const Outcome outcome = play_alone(*job.scenario);
  ASSERT_EQ(outcome.out_of_memory.size(), 1U) << "its siblings do not leak";
  EXPECT_EQ(outcome.out_of_memory[0].first, kVictim);
  EXPECT_EQ(play_alone(*with_siblings(trace, 3, true).scenario).out_of_memory.size(), 4U);
}

TEST(AccuracyPast, RunsAreRememberedAsOlderThanTheOneThatIsJudged) {
  const Trace trace = short_trace("warm_up_exponential");
  Past past;
  for (std::size_t i = 0; i < 3; ++i) play_earlier_run(trace, Earlier::healthy, i, 3 - i, Config{}, past);
  const auto known = std::find_if(past.programs().begin(), past.programs().end(), [](const auto& program) {
    return program.first.find("app.py") != std::string::npos;
  });
  ASSERT_NE(known, past.programs().end());
  EXPECT_EQ(known->second.runs, 3U);
  Timestamp last = known->second.first;
  for (const FinishedRun& run : known->second.recent) {
    EXPECT_GE(run.begin, last) << "in the order in which they ran";
    EXPECT_LT(run.end, Timestamp{}) << "before the run that is judged, which begins at zero";
    last = run.end;
  }
  // A new command with a relevant change is another program.
  const Trace changed = with_new_command(this_run(trace));
  for (const sim::ProcessSpec& process : changed.scenario->processes)
    if (process.info.pid == kVictim) {
      EXPECT_FALSE(past.programs().contains(program_identity(process.info).text));
    }
}

TEST(AccuracyPast, PlayingATraceDoesNotChangeWhatWasKnown) {
  const Trace trace = short_trace("embedding_job");
  const Past past;
  play(trace, Config{}, past);
  EXPECT_TRUE(past.programs().empty());
}

}  // namespace
}  // namespace vramtrack::accuracy
