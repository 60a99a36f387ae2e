// Properties of every recording, through the whole engine: the scenarios of tests/scenarios, sampled less often,
// repeated, truncated, and run after something else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
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

/// The number of ticks from `from_s` to `to_s` with a sample of the device that leaks, or of the first device.
std::size_t looks(const Recorded& recorded, double from_s, double to_s) {
  return static_cast<std::size_t>(std::count_if(recorded.ticks.begin(), recorded.ticks.end(), [&](const Batch& tick) {
    if (tick.samples.empty()) return false;
    const double t_s = seconds_between(recorded.scenario.start.value_or(Timestamp{}), tick.samples.front().time);
    return t_s >= from_s && t_s < to_s;
  }));
}

/// The shortest life that the verdict is about: of a leak, from its onset to the end of memory; of a program that is
/// run repeatedly, one run; otherwise the recording.
double life_s(const sim::Scenario& scenario) {
  double life = scenario.duration_s;
  if (scenario.truth && scenario.truth->leak)
    life = scenario.truth->oom_s.value_or(scenario.duration_s) - scenario.truth->onset_s.value_or(0);
  for (const sim::ProcessSpec& process : scenario.processes)
    if (process.lifetime_s) life = std::min(life, *process.lifetime_s);
  return life;
}

/// Every `n`th reading of the machine; events in between are reported at the next one.
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

// For the verdict: a leak stays claimed, and health unclaimed, at any period that leaves 200 readings per life.
TEST_P(EveryScenario, ACoarserPeriodChangesNoLeakVerdict) {
  // The losses with a longer period, and their reasons.
  static const std::map<std::string, std::string> kLost = {
      {"leak_diurnal", "it stands still by night for about as long as an alert lasts that nothing confirms"},
      {"leak_noisy", "noise of 1 GiB that lasts 3 min: which of it is seen decides"},
      {"leak_gc_floor", "under a limit that stands still only the dips tell, and they are seen by chance"},
      {"leak_sawtooth_floor_only", "the same"},
      {"leak_partial_release", "what it gives back grows with what it took: bounded, and withdrawn in the end"},
  };
  if (const auto lost = kLost.find(recorded_.scenario.name); lost != kLost.end()) GTEST_SKIP() << lost->second;
  const Played whole = play(recorded_, recorded_.ticks);
  whole.engine->end_of_recording();  // as when a recording is analysed: a nearly certain leak counts
  const bool leak = claimed(*whole.engine->view());
  const double life = life_s(recorded_.scenario);
  const std::size_t at_most = looks(recorded_, 0, recorded_.scenario.duration_s) == 0
                                  ? 1
                                  : static_cast<std::size_t>(life / recorded_.scenario.period_s / 200);
  const std::set<std::size_t> factors = {at_most, at_most / 2, at_most / 4};
  for (const std::size_t n : factors) {
    if (n < 2 || n > at_most) continue;
    const Played played = play(recorded_, thinned(recorded_.ticks, n));
    played.engine->end_of_recording();
    EXPECT_EQ(claimed(*played.engine->view()), leak) << "every " << n << "th look:\n" << in_full(played);
  }
}

// Repeating each tick at once changes no alert and no verdict. (Not to the last bit: the history by which a device's
// growth is divided among its processes is averaged over samples.)
TEST_P(EveryScenario, RepeatedSamplesChangeNothing) {
  std::vector<Batch> twice = recorded_.ticks;
  for (Batch& tick : twice) {
    const std::vector<Sample> again = tick.samples;
    tick.samples.insert(tick.samples.end(), again.begin(), again.end());
  }
  EXPECT_EQ(in_short(play(recorded_, twice)), in_short(play(recorded_, recorded_.ticks)));
}

/// The end of a device's run and the end of its alert are reported alike.
TEST_P(EveryScenario, AnAlertEndsAsItsRunDid) {
  const Played played = play(recorded_, recorded_.ticks);
  const auto view = played.engine->view();
  for (const SeriesView& s : view->series) {
    for (const Alert& alert : s.alerts) {
      EXPECT_TRUE(!alert.end_kind || alert.ended == AlertEnd::process_ended) << name_of(s.key);
      const bool is_its_end = s.verdict.end && alert.end_kind && alert.raised <= s.verdict.end->time &&
                              alert.cleared >= s.verdict.end->time && &alert == &s.alerts.back();
      if (is_its_end) {
        EXPECT_EQ(alert.end_kind, s.verdict.end->how) << name_of(s.key) << ": " << alert.end_reason;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryScenario, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kGiB = 1U << 30U;

/// A machine with one GPU of 24 GiB and one process at a time, in ticks of 5 s.
class Machine {
 public:
  Machine() : catalog(std::make_shared<Catalog>()) {
    DeviceInfo device;
    device.id = "GPU-0";
    device.index = 0;
    device.capacity_bytes = 24 * kGiB;
    catalog->describe(device);
    device_ = catalog->intern({Metric::device_used, "GPU-0", 0, 0});
  }

  /// Runs `pid` with `start_ticks` for `duration_s`; its memory is `bytes` of the seconds since its start.
  template <class Bytes>
  void run(std::uint64_t start_ticks, double duration_s, Bytes bytes) {
    const SeriesId process = catalog->intern({Metric::process_used, "GPU-0", 100, start_ticks});
    for (double t_s = 0; t_s < duration_s; t_s += 5) {
      const auto used = static_cast<std::uint64_t>(bytes(t_s));
      ticks.push_back({{{now, device_, 300 * kMiB + used}, {now, process, used}}, {}, {}});
      now += std::chrono::seconds{5};
    }
    Event ended;
    ended.time = now;
    ended.kind = Event::Kind::process_ended;
    ended.device_id = "GPU-0";
    ended.pid = 100;
    ended.pid_start_ticks = start_ticks;
    ticks.push_back({{{now, device_, 300 * kMiB}}, {ended}, {}});
    now += std::chrono::seconds{5};
  }
  void idle_until(Timestamp time) {
    for (; now < time; now += std::chrono::seconds{5}) ticks.push_back({{{now, device_, 300 * kMiB}}, {}, {}});
  }

  std::shared_ptr<Catalog> catalog;
  std::vector<Batch> ticks;
  Timestamp now{};

 private:
  SeriesId device_{};
};

/// The reports since `time` about the series with these start ticks (0: the device).
std::string told_of(const Played& played, std::uint64_t start_ticks, Timestamp since) {
  std::string out;
  for (const Telling& telling : *played.told)
    if (telling.time >= since && played.catalog->key(telling.change.alert.series).pid_start_ticks == start_ticks)
      out += iso8601(telling.time) + (telling.change.news == AlertNews::cleared ? " - " : " + ") +
             in_full(telling.change.alert) + "\n";
  return out;
}

// Exact: after a process has ended and another one has started with the same pid, process and device are judged as on a
// machine that had been idle. (The device, if the new life begins on its coarsest bucket, 5.7 h.)
TEST(Restart, NothingOfTheOldProcessRemains) {
  const double leak = 4.0 * kMiB;  // per second
  const auto old_leak = [&](double t_s) { return 2.0 * kGiB + leak * t_s; };
  const auto old_high = [&](double) { return 20.0 * kGiB; };
  const auto new_leak = [&](double t_s) { return 4.0 * kGiB + leak * t_s; };
  const auto new_flat = [&](double) { return 4.0 * kGiB; };
  const Timestamp second_life{std::chrono::seconds{20480}};
  const auto both = [&](auto old, auto now, bool with_old) {
    Machine machine;
    if (with_old) machine.run(7, 5000, old);
    machine.idle_until(second_life);
    machine.run(8, 5000, now);
    Played played = begin(machine.catalog);
    for (const Batch& tick : machine.ticks) feed(played, tick);
    return played;
  };
  const std::string alone_leak = told_of(both(old_leak, new_leak, false), 8, second_life);
  EXPECT_NE(alone_leak, "");
  EXPECT_EQ(told_of(both(old_leak, new_leak, true), 8, second_life), alone_leak);
  EXPECT_EQ(told_of(both(old_high, new_leak, true), 8, second_life), alone_leak);
  const std::string alone_device = told_of(both(old_leak, new_leak, false), 0, second_life);
  EXPECT_NE(alone_device, "");
  EXPECT_EQ(told_of(both(old_leak, new_leak, true), 0, second_life), alone_device);
  EXPECT_EQ(told_of(both(old_high, new_leak, true), 0, second_life), alone_device);
  // A leak, then health: the leak's alerts end with its process, and none is raised for its successor.
  const Played healthy = both(old_leak, new_flat, true);
  EXPECT_EQ(told_of(healthy, 8, {}) + told_of(healthy, 0, second_life), "");
  const auto view = healthy.engine->view();
  for (const SeriesView& s : view->series)
    for (const Alert& alert : s.alerts) EXPECT_NE(alert.ended, AlertEnd::standing) << in_full(alert);
}

// For the device, its processes and any capacity: constant is constant.
TEST(Constant, NeverAnEndNorAnAlert) {
  std::mt19937_64 random(7);
  for (const std::uint64_t level : {std::uint64_t{0}, kMiB, 11 * kGiB, 24 * kGiB - 300 * kMiB}) {
    Machine machine;
    machine.run(7, 9000, [&](double) { return static_cast<double>(level); });
    machine.ticks.pop_back();  // it has not ended
    Played played = begin(machine.catalog);
    Duration late{};
    for (Batch tick : machine.ticks) {
      if (random() % 100 == 0) late += std::chrono::seconds{random() % 3000};
      for (Sample& sample : tick.samples) sample.time += late;
      feed(played, tick);
      if (random() % 5 == 0) feed(played, tick);
    }
    EXPECT_TRUE(played.told->empty());
    const auto view = played.engine->view();
    for (const SeriesView& s : view->series) {
      EXPECT_EQ(s.verdict.finding.state, State::steady) << in_full(s.verdict.finding);
      EXPECT_FALSE(s.verdict.finding.oom_in_s);
      for (const Finding& dissent : s.verdict.dissent) EXPECT_FALSE(dissent.oom_in_s) << in_full(dissent);
    }
  }
}

// Exact: at a hundred random moments of all scenarios, the engine's answer equals its answer for a recording that ends
// there, and the alerts until then are the same, whatever comes later in the same batch.
TEST(Future, AHundredTruncationsSayWhatTheFullRunSaidThen) {
  std::mt19937_64 random(20260105);
  const std::vector<std::string> files = scenario_files();
  for (std::size_t i = 0; i < 100; ++i) {
    const Recorded recorded = record(load(files[i % files.size()]));
    const auto cut = static_cast<std::ptrdiff_t>(random() % recorded.ticks.size());
    const std::vector<Batch> until(recorded.ticks.begin(), recorded.ticks.begin() + cut + 1);
    const Played cut_short = play(recorded, until);
    // The full run, all in one batch: its reports count by their own times.
    const Played full = play(recorded, {joined(recorded.ticks)});
    const Timestamp now = cut_short.engine->view()->time;
    EXPECT_EQ(told_until(full, now), told_until(cut_short, now)) << recorded.scenario.name << " at tick " << cut;
    // And a watch, tick by tick, queried at that moment.
    Played asked = begin(recorded);
    for (const Batch& tick : until) feed(asked, tick);
    EXPECT_EQ(in_full(asked), in_full(cut_short)) << recorded.scenario.name << " at tick " << cut;
  }
}

}  // namespace
}  // namespace vramtrack
