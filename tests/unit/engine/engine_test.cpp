#include "engine/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using EngineTest = OneGpu;

TEST_F(EngineTest, NamesTheGrowerAndNotTheLargest) {
  const SeriesId big = process(10, "vllm serve");
  const SeriesId small = process(20, "python train.py");
  start();
  for (int t = 0; t < 1800; ++t) tick(t, 12 * kGiB + leak(t), {{big, 12 * kGiB}, {small, leak(t)}});
  const Verdict& v = seen(device_series).verdict;
  ASSERT_TRUE(v.finding.leak);
  ASSERT_TRUE(v.suspect);
  EXPECT_EQ(v.suspect->pid, 20U);
  EXPECT_GT(v.suspect->share, 0.9);
  EXPECT_TRUE(seen(small).verdict.finding.leak);
  EXPECT_FALSE(seen(big).verdict.finding.leak);
}

TEST_F(EngineTest, OfTwoThatGrowTheFasterIsNamedThoughTheOtherIsConfirmedFirst) {
  // The slow one has a quiet past and is soon certain; the fast one begins with its program and may be a warm-up.
  const SeriesId slow = process(10, "python slow.py");
  const SeriesId fast = process(20, "python fast.py");
  start();
  for (int t = 0; t < 4200; ++t) {
    const std::uint64_t a = 2 * kGiB + (t > 2400 ? static_cast<std::uint64_t>(t - 2400) * kMiB : 0);
    const std::uint64_t b = t > 2400 ? kGiB + static_cast<std::uint64_t>(t - 2400) * 4 * kMiB : 0;
    tick(t, a + b, {{slow, a}, {fast, b}});
  }
  const Verdict& v = seen(device_series).verdict;
  ASSERT_TRUE(v.finding.leak) << v.finding.because;
  ASSERT_TRUE(v.suspect);
  EXPECT_EQ(v.suspect->pid, 20U) << v.finding.because;
  // 24 GiB minus the memory used by then, at 5 MiB/s.
  ASSERT_TRUE(v.finding.oom_in_s);
  EXPECT_NEAR(v.finding.oom_in_s->mid, (24.0 - 3 - 1800 * 5 / 1024.0) * 1024 / 5, 300);
}

// A straight rise that begins with its program is held back; its recording ends first.
TEST_F(EngineTest, WhatTheEndOfARecordingConfirmsIsALeakOfTheDeviceTooAndNoAlert) {
  const SeriesId small = process(20, "python app.py");
  start();
  for (int t = 0; t < 4800; t += 5) {
    const std::uint64_t used = kGiB + static_cast<std::uint64_t>(t) * kMiB / 3;
    tick(t, used + kGiB, {{small, used}});
  }
  ASSERT_TRUE(changes.empty()) << "it must not be confirmed before";
  engine->end_of_recording();
  for (const SeriesId id : {small, device_series}) {
    EXPECT_EQ(seen(id).verdict.finding.stage, Stage::confirmed_at_end) << seen(id).verdict.finding.because;
    EXPECT_EQ(leaks_of(id).size(), 1U);
    EXPECT_TRUE(seen(id).alerts.empty());
  }
  EXPECT_TRUE(changes.empty());
}

TEST_F(EngineTest, SaysWhatWouldDecideARiseThatOneSeriesCannot) {
  const auto rising = [](int t) { return 2 * kGiB + static_cast<std::uint64_t>(t) * kMiB / 4; };
  start();
  for (int t = 0; t < 1200; ++t) tick(t, rising(t));
  const Finding alone = seen(device_series).verdict.finding;
  ASSERT_EQ(alone.state, State::growing) << alone.because;
  EXPECT_NE(alone.because.find("the memory of each process would show"), std::string::npos) << alone.because;

  const SeriesId one = process(20, "python train.py");
  start();
  for (int t = 0; t < 1200; ++t) tick(t, rising(t) + kGiB, {{one, rising(t)}});
  const Finding its = seen(one).verdict.finding;
  ASSERT_EQ(its.state, State::growing) << its.because;
  EXPECT_NE(its.because.find("an earlier run of the program would show"), std::string::npos) << its.because;
  EXPECT_EQ(seen(device_series).verdict.finding.because.find("the memory of each process"), std::string::npos);
}

TEST_F(EngineTest, SaysWhenNoVisibleProcessGrows) {
  const SeriesId still = process(10, "vllm serve");
  start();
  for (int t = 0; t < 1800; ++t) tick(t, leak(t) + 4 * kGiB, {{still, 4 * kGiB}});
  const Verdict& v = seen(device_series).verdict;
  ASSERT_TRUE(v.finding.leak);
  ASSERT_TRUE(v.suspect);
  EXPECT_EQ(v.suspect->pid, 0U);
}

TEST_F(EngineTest, AnEmptyListOfProcessesNamesNobodyRatherThanNothing) {
  start();
  for (int t = 0; t < 1800; ++t) tick(t, leak(t));
  EXPECT_FALSE(seen(device_series).verdict.suspect) << "a log that lists no processes says nothing of them";
  catalog.processes_are_listed = true;
  ASSERT_TRUE(seen(device_series).verdict.suspect);
  EXPECT_EQ(views.back()->series[0].verdict.suspect->pid, 0U);
  EXPECT_DOUBLE_EQ(views.back()->series[0].verdict.suspect->share, 1.0);
}

/// None of them grows, but if they keep arriving, the card becomes full.
TEST_F(EngineTest, JobsThatArriveAndStayFillTheDevice) {
  std::vector<SeriesId> jobs;
  for (std::uint32_t i = 0; i < 24; ++i) jobs.push_back(process(100 + i, "job"));
  start();
  for (int t = 0; t < 3600; ++t) {
    std::vector<std::pair<SeriesId, std::uint64_t>> running;
    for (int i = 0; i <= t / 150 && i < 24; ++i) running.emplace_back(jobs[static_cast<std::size_t>(i)], 900 * kMiB);
    tick(t, running.size() * 900 * kMiB, running);
  }
  ASSERT_FALSE(changes.empty());
  for (const AlertChange& change : changes) EXPECT_EQ(change.alert.series, device_series);
  EXPECT_TRUE(seen(device_series).verdict.finding.because.find("processes like job started one after another") !=
              std::string::npos);
}

TEST_F(EngineTest, AnEndedProcessEndsItsAlertAndTheDevices) {
  const SeriesId small = process(20, "python train.py");
  start();
  for (int t = 0; t < 4800; ++t) tick(t, 3 * kGiB + leak(t), {{small, leak(t)}});
  ASSERT_EQ(changes.size(), 2U);
  end_process(4800, 20);
  for (int t = 4801; t < 4900; ++t) tick(t, 3 * kGiB);
  ASSERT_EQ(changes.size(), 4U);
  EXPECT_EQ(changes[2].alert.ended, AlertEnd::process_ended);
  EXPECT_EQ(changes[3].alert.ended, AlertEnd::process_ended);
  EXPECT_TRUE(seen(small).ended);
}

TEST_F(EngineTest, ASeriesKeepsItsEarlierAlerts) {
  const SeriesId first = process(20, "python train.py");
  start();
  for (int t = 0; t < 4800; ++t) tick(t, leak(t) + kGiB, {{first, leak(t)}});
  end_process(4800, 20);
  const SeriesId second = process(21, "python train.py");
  for (int t = 4800; t < 11000; ++t) tick(t, leak(t - 4800) + kGiB, {{second, leak(t - 4800)}});
  const SeriesView& device = seen(device_series);
  ASSERT_GE(device.alerts.size(), 2U);
  EXPECT_LT(device.alerts.front().raised, at(4800));
  EXPECT_GT(device.alerts.back().raised, at(4800));
}

TEST_F(EngineTest, IgnoredProcessesNeverAlert) {
  const SeriesId small = process(20, "python known_grower.py");
  Config config;
  config.detection.ignore_patterns = {"known_.*"};
  start(config);
  for (int t = 0; t < 1800; ++t) tick(t, 8 * kGiB, {{small, leak(t)}});
  EXPECT_TRUE(changes.empty());
  EXPECT_TRUE(seen(small).ignored);
}

TEST_F(EngineTest, SeverityFollowsTheTimeThatIsLeft) {
  start();
  // 2 MiB/s into 20 GiB after two quiet hours: 2.8 h in all, so soon a warning, and a critical alert in the last hour.
  for (int t = 0; t < 16200; ++t) tick(t, 4 * kGiB + (t > 7200 ? static_cast<std::uint64_t>(t - 7200) * 2 * kMiB : 0));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].alert.severity, Severity::warning);
  EXPECT_EQ(changes[0].news, AlertNews::raised);
  EXPECT_EQ(changes[1].news, AlertNews::escalated);
  EXPECT_EQ(changes[1].alert.severity, Severity::critical);
  EXPECT_EQ(seen(device_series).verdict.severity, Severity::critical);
  EXPECT_EQ(seen(device_series).alerts[0].severity, Severity::critical);
}

TEST_F(EngineTest, WhatTheDriverKeepsIsNotHeadroom) {
  const SeriesId reserved = catalog.intern({Metric::device_reserved, "GPU-a", 0, 0});
  const auto eta_with = [&](std::uint64_t reserved_bytes) {
    start();
    for (int t = 0; t < 3000; ++t) tick(t, leak(t), {{reserved, reserved_bytes}});
    return seen(device_series).verdict.finding.oom_in_s->mid;
  };
  // 2 GiB at 4 MiB/s last 512 s.
  EXPECT_NEAR(eta_with(0) - eta_with(2 * kGiB), 512, 10);
}

TEST_F(EngineTest, EveryOtherDetectorsOpinionIsKeptAsDissent) {
  start();
  for (int t = 0; t < 3600; ++t) tick(t, 4 * kGiB + (leak(t) - 4 * kGiB) / 8);  // under linear_trend's 1 MB/s
  const Verdict& v = seen(device_series).verdict;
  EXPECT_EQ(v.finding.stage, Stage::suspected);
  ASSERT_EQ(v.dissent.size(), 2U);
  EXPECT_EQ(v.dissent[0].detector, "linear_trend");
  EXPECT_FALSE(v.dissent[0].leak);
}

TEST_F(EngineTest, ALostDeviceIsPausedAndGoesOn) {
  start();
  for (int t = 0; t < 600; ++t) tick(t, 4 * kGiB);
  Batch batch;
  Event lost;
  lost.time = at(600);
  lost.kind = Event::Kind::device_lost;
  lost.device_id = "GPU-a";
  lost.text = "GPU 0 is lost";
  batch.events.push_back(lost);
  engine->ingest(batch);
  EXPECT_TRUE(seen(device_series).paused);
  EXPECT_EQ(views.back()->notices.back().text, "GPU 0 is lost");
  lost.kind = Event::Kind::device_resumed;
  lost.time = at(900);
  batch.events = {lost};
  engine->ingest(batch);
  tick(901, 4 * kGiB);
  EXPECT_FALSE(seen(device_series).paused);
  EXPECT_EQ(seen(device_series).samples, 601U);
}

TEST_F(EngineTest, HealthIsKeptUntilTheNextReadingAndForgottenWithALostDevice) {
  start();
  Batch batch;
  batch.samples.push_back({at(0), device_series, kGiB});
  DeviceReading reading{at(0), "GPU-a", 0.5, {}, DeviceHealth{}};
  reading.health->temperature_celsius = 71;
  reading.gauges.power_watts = 312;
  batch.readings.push_back(reading);
  batch.loads.push_back({at(0), device_series, {0.5, 1.5, 7}});
  engine->ingest(batch);
  EXPECT_EQ(seen(device_series).gauges.power_watts, 312);
  EXPECT_EQ(seen(device_series).load, (ProcessLoad{0.5, 1.5, 7}));
  reading.health.reset();
  batch.readings = {reading};
  batch.samples[0].time = at(1);
  engine->ingest(batch);
  ASSERT_TRUE(seen(device_series).health);
  EXPECT_EQ(seen(device_series).health->temperature_celsius, 71);

  Batch events;
  events.events.push_back(Event{.time = at(2),
                                .kind = Event::Kind::xid,
                                .device_id = "GPU-a",
                                .text = "XID 79: the GPU has fallen off the bus",
                                .xid = 79});
  events.events.push_back(Event{.time = at(2), .kind = Event::Kind::device_lost, .device_id = "GPU-a", .text = "gone"});
  engine->ingest(events);
  EXPECT_EQ(seen(device_series).gauges, DeviceGauges{});
  EXPECT_EQ(seen(device_series).load, ProcessLoad{});
  EXPECT_EQ(seen(device_series).utilisation_ratio, std::nullopt);
  EXPECT_FALSE(seen(device_series).health) << "what it was before is not what it is";
  EXPECT_EQ(seen(device_series).last_xid, (LastXid{at(2), 79, "XID 79: the GPU has fallen off the bus"}));
}

TEST_F(EngineTest, AfterARestartTheSharesAreThoseOfTheRates) {
  const SeriesId steady = process(20, "python keeps.py");
  const SeriesId before = process(30, "python restarts.py");
  const SeriesId after = process(31, "python restarts.py");
  start();
  constexpr int kReadings = 720;
  constexpr int kRestart = 360;
  for (int i = 0; i < kReadings; ++i) {
    if (i == kRestart) end_process(10 * i - 5, 30);
    const bool is_first = i < kRestart;
    const std::uint64_t keeps = static_cast<std::uint64_t>(2000 + 6 * i) * kMiB;
    const std::uint64_t restarts = static_cast<std::uint64_t>(2000 + 6 * (is_first ? i : i - kRestart)) * kMiB;
    tick(10 * i, keeps + restarts + 500 * kMiB, {{steady, keeps}, {is_first ? before : after, restarts}});
  }
  const Verdict device = seen(device_series).verdict;
  const Verdict one = seen(steady).verdict;
  const Verdict other = seen(after).verdict;
  ASSERT_TRUE(device.suspect);
  EXPECT_NE(device.suspect->pid, 30U) << "it has ended";
  const double both = one.finding.growth_bytes_per_s.mid + other.finding.growth_bytes_per_s.mid;
  EXPECT_NEAR(device.finding.growth_bytes_per_s.mid, both, 0.01 * both);
  EXPECT_NEAR(device.suspect->share, one.finding.growth_bytes_per_s.mid / both, 0.01)
      << "in bytes since the onset it would be two thirds, beside equal rates";
}

TEST_F(EngineTest, ASampleOlderThanTheLastIsDropped) {
  start();
  tick(10, 4 * kGiB);
  tick(5, 8 * kGiB);
  EXPECT_EQ(seen(device_series).used_bytes, 4 * kGiB);
  EXPECT_EQ(seen(device_series).samples, 1U);
}

TEST_F(EngineTest, APrefixSaysWhatTheWholeSaidUpToThere) {
  // Causal, even if the capacity doubles later.
  const auto play = [&](int until_s) {
    Catalog fresh;
    DeviceInfo device;
    device.id = "GPU-a";
    device.capacity_bytes = 12 * kGiB;
    fresh.describe(device);
    const SeriesId id = fresh.intern({Metric::device_used, "GPU-a", 0, 0});
    Engine whole({}, fresh);
    std::vector<AlertChange> said;
    whole.on_alert([&](const AlertChange& change) { said.push_back(change); });
    Batch batch;
    for (int t = 0; t < until_s; ++t) batch.samples.push_back({at(t), id, leak(t) / 2});
    Event grows;
    grows.time = at(4600);
    grows.kind = Event::Kind::capacity;
    grows.device_id = "GPU-a";
    grows.capacity_bytes = 24 * kGiB;
    if (until_s > 4600) batch.events.push_back(grows);
    whole.ingest(batch);
    whole.finish();
    EXPECT_EQ(fresh.device("GPU-a")->capacity_bytes, until_s > 4600 ? 24 * kGiB : 12 * kGiB);
    return said;
  };
  const auto whole = play(5400);
  const auto prefix = play(4500);
  ASSERT_GE(prefix.size(), 1U);
  ASSERT_GE(whole.size(), 1U);
  EXPECT_EQ(whole[0].alert.raised, prefix[0].alert.raised);
  EXPECT_EQ(whole[0].alert.finding.oom_in_s->mid, prefix[0].alert.finding.oom_in_s->mid);
}

TEST_F(EngineTest, ARecordingKeepsEveryEndedProcessAndAWatchSoMany) {
  const auto run = [&](std::size_t keep) {
    Catalog fresh;
    Engine churn({}, fresh, keep);
    for (std::uint32_t pid = 1; pid <= 300; ++pid) {
      const SeriesId id = fresh.intern({Metric::process_used, "GPU-a", pid, pid});
      Batch batch;
      batch.samples.push_back({at(pid), id, kGiB});
      Event over;
      over.time = at(pid + 0.5);
      over.kind = Event::Kind::process_ended;
      over.pid = pid;
      over.pid_start_ticks = pid;
      batch.events.push_back(over);
      churn.ingest(batch);
    }
    churn.finish();
    return churn.view()->series.size();
  };
  EXPECT_EQ(run(Engine::kKeepAll), 300U);
  EXPECT_EQ(run(100), 100U);
}

TEST_F(EngineTest, HostsDoNotMix) {
  // GPU "0" and pid 20 exist on both hosts; only the process on node1 grows.
  constexpr std::uint64_t kCapacity = 24 * kGiB;
  const std::vector<std::string> hosts = {"node1", "node2"};
  std::vector<SeriesId> devices;
  std::vector<SeriesId> processes;
  for (const std::string& host : hosts) {
    catalog.describe(DeviceInfo{.id = "0", .capacity_bytes = kCapacity, .host = host});
    catalog.describe(ProcessInfo{.pid = 20, .start_ticks = 1020, .command = "job of " + host, .host = host});
    devices.push_back(catalog.intern({Metric::device_used, "0", 0, 0, host}));
    processes.push_back(catalog.intern({Metric::process_used, "0", 20, 1020, host}));
  }
  start();
  for (int t = 0; t < 1800; ++t) {
    Batch batch;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      for (const SeriesId id : {devices[i], processes[i]})
        batch.samples.push_back({at(t), id, i == 0 ? leak(t) : 4 * kGiB});
    engine->ingest(batch);
  }
  ASSERT_TRUE(seen(devices[0]).verdict.suspect);
  EXPECT_EQ(seen(devices[0]).verdict.suspect->command, "job of node1");
  EXPECT_FALSE(seen(devices[1]).verdict.finding.leak);
  EXPECT_EQ(seen(processes[1]).process->command, "job of node2");

  Batch over;
  over.events.push_back({.time = at(1800), .kind = Event::Kind::process_ended, .pid = 20, .pid_start_ticks = 1020});
  engine->ingest(over);
  EXPECT_FALSE(seen(processes[0]).ended) << "an event without a host is of this machine";
  over.events.front().host = "node1";
  engine->ingest(over);
  EXPECT_TRUE(seen(processes[0]).ended);
  EXPECT_FALSE(seen(processes[1]).ended);
  Batch lost;
  lost.events.push_back({.time = at(1801), .kind = Event::Kind::device_lost, .device_id = "0", .host = "node2"});
  engine->ingest(lost);
  EXPECT_FALSE(seen(devices[0]).paused);
  EXPECT_TRUE(seen(devices[1]).paused);
}

TEST_F(EngineTest, AnEndOrAChangeLooksAtNoOtherSeries) {
  constexpr std::uint32_t kSeries = 10000;
  start();
  Batch batch;
  for (std::uint32_t pid = 1; pid <= kSeries; ++pid) {
    catalog.describe(ProcessInfo{.pid = pid, .start_ticks = 1000 + pid});
    batch.samples.push_back({at(0), catalog.intern({Metric::process_used, "GPU-a", pid, 1000 + pid}), kGiB});
  }
  engine->ingest(batch);
  engine->finish();
  const auto visits_of = [&](const auto& act) {
    const std::uint64_t before = engine->series_visits();
    act();
    return engine->series_visits() - before;
  };
  EXPECT_EQ(visits_of([&] { end_process(1, 7); }), 1U);
  EXPECT_EQ(visits_of([&] {
              catalog.describe(ProcessInfo{.pid = 8, .start_ticks = 1008, .command = "now known"});
              tick(2, kGiB);
              engine->finish();
            }),
            1U);
  EXPECT_EQ(visits_of([&] {
              catalog.describe(DeviceInfo{.id = "GPU-a", .capacity_bytes = 48 * kGiB});
              catalog.intern({Metric::process_used, "GPU-a", kSeries + 1, 0});
              tick(3, kGiB);
              engine->finish();
            }),
            0U);
}

TEST_F(EngineTest, AnEndedProcessKeepsItsFramework) {
  const SeriesId small = process(20, "python train.py");
  ProcessInfo trainer = *catalog.process(20, 1020);
  trainer.framework = "PyTorch";
  catalog.describe(trainer);
  start();
  for (int t = 0; t < 1800; ++t) tick(t, leak(t), {{small, leak(t)}});
  end_process(1800, 20);
  EXPECT_EQ(seen(small).verdict.framework, "PyTorch");
  EXPECT_FALSE(seen(small).verdict.causes.empty());
}

TEST_F(EngineTest, OneBatchOrManyGiveTheSameAlerts) {
  start();
  for (int t = 0; t < 4800; ++t) tick(t, leak(t));
  const auto one_by_one = changes;
  changes.clear();
  start();
  Batch batch;
  for (int t = 0; t < 4800; ++t) batch.samples.push_back({at(t), device_series, leak(t)});
  engine->ingest(batch);
  engine->finish();
  ASSERT_FALSE(changes.empty());
  ASSERT_EQ(changes.size(), one_by_one.size());
  EXPECT_EQ(changes[0].alert.raised, one_by_one[0].alert.raised);
  EXPECT_EQ(changes[0].alert.finding.confidence, one_by_one[0].alert.finding.confidence);
}

/// The texts about a recording use its own scale, whatever else is read at the same time.
TEST(EngineScale, TwoRecordingsInTurnsAreEachInTheirOwnScale) {
  struct Recorded : OneGpu {
    explicit Recorded(Scale scale) {
      catalog.clock_is_relative = true;
      catalog.scale = std::move(scale);
      start();
    }
    void TestBody() override {}
    void leaks(int t) { tick(t, leak(t)); }
    std::string words() {
      const SeriesView& s = seen(device_series);
      const ConclusionWords told = conclusion_words(*views.back(), s);
      return s.verdict.finding.because + "; " + told.growth + "; " + told.forecast;
    }
  };
  Scale steps;
  steps.step = "step";
  Recorded counted(steps);
  Recorded timed(Scale{});
  for (int t = 0; t < 1800; ++t) {
    counted.leaks(t);
    timed.leaks(t);
  }
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_NE(counted.words().find("MiB/step"), std::string::npos) << counted.words();
    EXPECT_EQ(counted.words().find(" min"), std::string::npos) << counted.words();
    EXPECT_NE(timed.words().find("MiB/min"), std::string::npos) << timed.words();
    EXPECT_EQ(timed.words().find("step"), std::string::npos) << timed.words();
  }
}

}  // namespace
}  // namespace vramtrack
