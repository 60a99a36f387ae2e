// Facts other than memory, through the engine: the series that they help to judge, and the reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/units.hpp"
#include "scenario_run.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1024 * kMiB;

/// An 80 GiB card, on which processes together load 60 GiB within 20 minutes.
struct Machine {
  Catalog catalog;
  Engine engine{Config{}, catalog};
  std::vector<AlertChange> changes;
  SeriesId used = catalog.intern({Metric::device_used, "gpu", 0, 0});
  SeriesId busy = catalog.intern({Metric::device_busy, "gpu", 0, 0});

  Machine() {
    DeviceInfo info;
    info.id = "gpu";
    info.index = 0;
    info.capacity_bytes = 80ULL << 30;
    catalog.describe(info);
    engine.on_alert([this](const AlertChange& change) { changes.push_back(change); });
  }
  SeriesId of_process(Metric metric, std::uint32_t pid) { return catalog.intern({metric, "gpu", pid, 1}); }
  const SeriesView* find(SeriesId id) {
    view = engine.view();
    for (const SeriesView& s : view->series)
      if (s.id == id) return &s;
    return nullptr;
  }
  std::shared_ptr<const View> view;
};

std::uint64_t load(double s) {
  return static_cast<std::uint64_t>((0.5 + 60 * std::clamp((s - 120) / 1200, 0.0, 1.0)) * kGiB);
}

TEST(FactsOfADevice, AreNoSeriesOfTheViewAndMakeALoadNoAlert) {
  Machine m;
  for (int s = 0; s <= 4000; s += 15) {
    Batch batch;
    const Timestamp now{from_seconds(s)};
    batch.samples.push_back({now, m.used, load(s)});
    batch.samples.push_back({now, m.busy, s < 1320 ? 0U : 9000U});
    m.engine.ingest(batch);
    if (s == 900) {
      ASSERT_NE(m.find(m.used), nullptr);
      EXPECT_EQ(m.find(m.used)->verdict.finding.state, State::loading);
      EXPECT_EQ(m.view->series.size(), 1U);
    }
  }
  EXPECT_TRUE(m.changes.empty());
  EXPECT_TRUE(m.find(m.used)->suspicions.empty());
}

/// The load is not part of the program's growth once it works, at any time scale.
TEST(FactsOfADevice, WhatLeaksAfterALoadIsJudgedByItself) {
  for (const int rest_s : {0, 300, 1200}) {
    Machine m;
    const int begin = 1320 + rest_s;
    for (int s = 0; s <= begin + 8400; s += 15) {
      Batch batch;
      const Timestamp now{from_seconds(s)};
      const double leaked = 2.0 * std::max(0, s - begin) * kMiB;
      batch.samples.push_back({now, m.used, load(s) + static_cast<std::uint64_t>(leaked)});
      batch.samples.push_back({now, m.busy, s < 1320 ? 0U : 8000U});
      m.engine.ingest(batch);
      if (s < begin + 2400 || s % 300 != 0) continue;
      ASSERT_NE(m.find(m.used), nullptr);
      const Finding& finding = m.find(m.used)->verdict.finding;
      EXPECT_NEAR(finding.growth_bytes_per_s.mid / kMiB, 2, 0.2) << rest_s << ' ' << s << ' ' << finding.because;
      EXPECT_GT(finding.confidence, 0.5) << rest_s << ' ' << s << ' ' << finding.because;
    }
    EXPECT_EQ(m.find(m.used)->alerts.size(), 1U) << rest_s;
  }
}

/// A run is recognised only after some readings, and judged separately from then on.
TEST(FactsOfADevice, ALoadInStagesAfterAnIdleTimeIsNoAlertThoughNothingSaysHowBusyItIs) {
  Machine m;
  for (int s = 0; s <= 4000; s += 10) {
    const double stage = std::clamp(std::floor((s - 720) / 38.0), 0.0, 28.0);
    Batch batch;
    batch.samples.push_back(
        {Timestamp{from_seconds(s)}, m.used, static_cast<std::uint64_t>((0.001 + 2.5 * stage) * kGiB)});
    m.engine.ingest(batch);
  }
  EXPECT_TRUE(m.changes.empty());
}

/// The watch begins three minutes after a load; its process is listed once, and from then on the total decides.
TEST(FactsOfADevice, ItsTotalIsAsOldAsTheOnlyProcess) {
  for (const int processes : {0, 1, 2}) {  // of known age
    Machine m;
    for (int s = 0; s <= 1500; s += 5) {
      Batch batch;
      const Timestamp now{from_seconds(s)};
      batch.samples.push_back({now, m.used, load(s + 300) + (1ULL << 30)});
      if (s == 0) {
        batch.samples.push_back({now, m.of_process(Metric::process_used, 7), load(300)});
        if (processes == 2) batch.samples.push_back({now, m.of_process(Metric::process_used, 8), 1ULL << 30});
        if (processes > 0) batch.samples.push_back({now, m.of_process(Metric::process_age, 7), 180});
        if (processes == 2) batch.samples.push_back({now, m.of_process(Metric::process_age, 8), 28800});
      }
      m.engine.ingest(batch);
    }
    ASSERT_NE(m.find(m.used), nullptr);
    EXPECT_EQ(m.find(m.used)->suspicions.empty() && m.changes.empty(), processes == 1) << processes;
  }
}

TEST(FactsOfAProcess, WhatItReadsExplainsItsGrowthAndItsDevices) {
  Machine m;
  m.catalog.processes_are_listed = true;
  const SeriesId memory = m.of_process(Metric::process_used, 7);
  const SeriesId other = m.of_process(Metric::process_used, 8);
  const SeriesId read = m.of_process(Metric::process_read, 7);
  for (int s = 0; s <= 4000; s += 15) {
    Batch batch;
    const Timestamp now{from_seconds(s)};
    batch.samples.push_back({now, m.used, load(s) + (4ULL << 30)});
    batch.samples.push_back({now, memory, load(s)});
    batch.samples.push_back({now, other, 4ULL << 30});
    batch.samples.push_back({now, m.busy, 9000});  // from the other process
    if (s % 30 == 0)
      batch.samples.push_back({now, read, static_cast<std::uint64_t>(1.2 * static_cast<double>(load(s)))});
    m.engine.ingest(batch);
    if (s != 900) continue;
    EXPECT_EQ(m.find(memory)->verdict.finding.state, State::loading);
    EXPECT_THAT(m.find(memory)->verdict.finding.because, HasSubstr("GiB read"));
    EXPECT_EQ(m.find(m.used)->verdict.finding.state, State::loading);
    EXPECT_THAT(m.find(m.used)->verdict.finding.because, HasSubstr("pid 7: loading, "));
  }
  EXPECT_TRUE(m.changes.empty());
}

/// As from a socket: its reads are not counted. The GPU works meanwhile, so that the load is not that of an idle GPU.
TEST(FactsOfAProcess, WhatItsDeviceReceivesExplainsItsGrowthWhileNobodyElseUsesIt) {
  for (const bool alone : {true, false}) {
    Machine m;
    m.catalog.processes_are_listed = true;
    const SeriesId memory = m.of_process(Metric::process_used, 7);
    const SeriesId other = m.of_process(Metric::process_used, 8);
    const SeriesId received = m.catalog.intern({Metric::device_received, "gpu", 0, 0});
    for (int s = 0; s <= 900; s += 5) {
      Batch batch;
      const Timestamp now{from_seconds(s)};
      batch.samples.push_back({now, m.used, load(s) + (alone ? 0 : 4ULL << 30)});
      batch.samples.push_back({now, memory, load(s)});
      if (!alone) batch.samples.push_back({now, other, 4ULL << 30});
      batch.samples.push_back({now, m.busy, 2000});
      batch.samples.push_back({now, received, load(s + 5) > load(s) ? (load(s + 5) - load(s)) / 5 : 0});
      m.engine.ingest(batch);
    }
    EXPECT_EQ(m.find(memory)->verdict.finding.state == State::loading, alone);
    if (alone) {
      EXPECT_EQ(m.find(m.used)->verdict.finding.state, State::loading);
    }
  }
}

TEST(FactsOfAProcess, AreForgottenWithIt) {
  Catalog catalog;
  Engine engine(Config{}, catalog, 2);
  const auto id = [&](Metric metric, std::uint32_t pid) { return catalog.intern({metric, "gpu", pid, 1}); };
  for (std::uint32_t pid = 1; pid <= 20; ++pid) {
    Batch batch;
    const Timestamp now{from_seconds(pid)};
    batch.samples.push_back({now, id(Metric::process_used, pid), 1 << 30});
    batch.samples.push_back({now, id(Metric::process_read, pid), 1 << 20});
    engine.ingest(batch);
    batch.clear();
    Event end;
    end.time = now + from_seconds(0.5);
    end.kind = Event::Kind::process_ended;
    end.device_id = "gpu";
    end.pid = pid;
    end.pid_start_ticks = 1;
    batch.events.push_back(end);
    engine.ingest(batch);
  }
  EXPECT_LE(catalog.live(), 4U);
}

}  // namespace
}  // namespace vramtrack
