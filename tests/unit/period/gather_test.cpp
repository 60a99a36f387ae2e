// Gathering a period from logs and from stores: which data is counted and judged, and which alerts are reported.
#include "period/gather.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "../temp_folder.hpp"
#include "core/units.hpp"
#include "recorded/recorded.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// 2026-01-05T08:00:00Z
const Timestamp kBegin{std::chrono::seconds{1767600000}};

Timestamp minute(double m) {
  return kBegin + from_seconds(m * kSecondsPerMinute);
}

class Gather : public ::testing::Test {
 protected:
  Gather() { logs.timezone = "UTC"; }

  /// One 24 GiB GPU with a reading every 10 s: used_mib(minute).
  template <class Used>
  std::string log(const std::string& name, int minutes, Used used_mib) {
    std::ofstream out(folder.file(name));
    out << "timestamp, index, memory.used [MiB], memory.total [MiB]\n";
    for (int s = 0; s < minutes * 60; s += 10) {
      std::string stamp = iso8601(kBegin + from_seconds(s));  // 2026-01-05T08:00:00Z
      stamp.pop_back();
      stamp[4] = stamp[7] = '/';
      stamp[10] = ' ';
      out << stamp << ", 0, " << static_cast<long>(used_mib(s / 60.0)) << " MiB, 24576 MiB\n";
    }
    return folder.file(name);
  }
  static double leak(double m) { return 4000 + 300 * m; }

  Result<PeriodReport> gather(const std::vector<std::string>& files, const TimeRange& range = {}) {
    return ReportGatherer(config, range).gather(*find_recorded("log"), files, logs);
  }

  std::unique_ptr<Store> open_store() {
    StoreConfig store_config = config.store;
    store_config.path = store_path();
    auto store = Store::open(store_config, catalog, kBegin);
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }
  [[nodiscard]] std::string store_path() const { return folder.file("vramtrack.db"); }
  SeriesId device(const std::string& id = "GPU-0") { return catalog.intern({Metric::device_used, id, 0, 0}); }
  SeriesId process(std::uint32_t pid) { return catalog.intern({Metric::process_used, "GPU-0", pid, pid * 10ULL}); }
  void append(Store& store, SeriesId series, double at_minute, std::uint64_t bytes) {
    const Timestamp time = minute(at_minute);
    Batch batch;
    batch.samples.push_back({time, series, bytes});
    store.keep_time({.boot_id = "boot", .since_boot = time - minute(0), .wall = time, .stamp = time});
    EXPECT_TRUE(store.append(batch));
  }
  void begin_watch(Store& store, double at_minute) {
    Batch batch;
    Event event;
    event.time = minute(at_minute);
    event.kind = Event::Kind::watch_started;
    batch.events.push_back(event);
    EXPECT_TRUE(store.append(batch));
  }
  Alert alert(SeriesId series, double raised, std::optional<double> cleared = {}) {
    Alert a;
    a.series = series;
    a.raised = minute(raised);
    a.severity = Severity::critical;
    a.finding.detector = "judge";
    a.finding.leak = true;
    if (cleared) {
      a.cleared = minute(*cleared);
      a.ended = AlertEnd::withdrawn;
    }
    return a;
  }

  TempFolder folder;
  Config config;
  LogOptions logs;
  Catalog catalog;
};

TEST_F(Gather, ALogIsJudgedAsAWatchWould) {
  const auto report = gather({log("leak.csv", 60, leak)});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->files, ElementsAre(folder.file("leak.csv")));
  EXPECT_EQ(report->samples, 360U);
  EXPECT_EQ(report->first, kBegin);
  EXPECT_EQ(report->last, minute(60) - from_seconds(10));
  ASSERT_THAT(report->series, SizeIs(1));
  const PeriodSeries& s = report->series[0];
  EXPECT_TRUE(s.has_verdict);
  EXPECT_TRUE(s.seen_from_start);
  EXPECT_FALSE(s.gone);
  EXPECT_EQ(s.view.verdict.finding.state, State::leaking);
  ASSERT_THAT(s.alerts, SizeIs(1));
  EXPECT_TRUE(s.view.alerts.empty()) << "told once";
  EXPECT_TRUE(has_leak(*report));
  EXPECT_FALSE(has_leak(*gather({log("steady.csv", 60, [](double) { return 4000; })})));
}

TEST_F(Gather, WhatLiesBeforeTheRangeIsJudgedButNotCounted) {
  const std::string file = log("leak.csv", 60, leak);
  const auto report = gather({file}, {minute(50), minute(55)});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->samples, 30U);
  EXPECT_EQ(report->first, minute(50));
  EXPECT_EQ(report->last, minute(55) - from_seconds(10)) << "the end is not part of it";
  ASSERT_THAT(report->series, SizeIs(1));
  EXPECT_EQ(report->series[0].first_seen, kBegin);
  EXPECT_EQ(report->series[0].view.verdict.finding.state, State::leaking) << "five minutes alone would not show it";
  EXPECT_THAT(report->series[0].alerts, SizeIs(1)) << "raised before, it stands in the period";
  const auto early = gather({file}, {std::nullopt, minute(2)});
  ASSERT_TRUE(early);
  EXPECT_THAT(early->series[0].alerts, IsEmpty()) << "not yet raised";
}

TEST_F(Gather, APeriodWithoutSamplesSaysWhatThereIs) {
  const std::string file = log("leak.csv", 60, leak);
  const auto late = gather({file}, {minute(100), std::nullopt});
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message,
              HasSubstr(file + " is from 2026-01-05T08:00:00Z to 2026-01-05T08:59:50Z; give another period"));
  const auto early = gather({file}, {std::nullopt, minute(-10)});
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("is from 2026-01-05T08:00:00Z and later"));
}

TEST_F(Gather, RecordingsThatDoNotBelongTogetherAreAnError) {
  const auto report = gather({log("a.csv", 5, leak), log("b.csv", 5, leak)});
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("2 recordings that do not belong together"));
  EXPECT_FALSE(gather({folder.file("missing.csv")}));
}

TEST_F(Gather, AStoreGivesDevicesFirstAndThenProcessesByTheirPeak) {
  {
    const auto store = open_store();
    ASSERT_NE(store, nullptr);
    begin_watch(*store, 0);
    for (int m = 0; m < 10; ++m) {
      append(*store, process(7), m, kBytesPerGiB);
      append(*store, process(8), m, 2 * kBytesPerGiB);
      append(*store, device(), m, 4 * kBytesPerGiB);
    }
  }
  const auto report = ReportGatherer(config, {}).gather(*find_recorded("store"), {store_path()}, {});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_THAT(report->series, SizeIs(3));
  EXPECT_EQ(report->series[0].view.key.pid, 0U);
  EXPECT_EQ(report->series[1].view.key.pid, 8U);
  EXPECT_EQ(report->series[2].view.key.pid, 7U);
  EXPECT_EQ(report->samples, 30U);
}

TEST_F(Gather, AStoresAlertsAreThoseThatWereTold) {
  {
    const auto store = open_store();
    ASSERT_NE(store, nullptr);
    begin_watch(*store, 0);
    for (int m = 0; m < 30; ++m) append(*store, device(), m, 4 * kBytesPerGiB);  // steady, so no leak is found now
    EXPECT_TRUE(store->record(alert(device(), 5, 8)));
    EXPECT_TRUE(store->record(alert(device(), 10, 25)));
    EXPECT_TRUE(store->record(alert(device(), 12)));
    begin_watch(*store, 20);
    EXPECT_TRUE(store->record(alert(device(), 28)));
  }
  const auto report =
      ReportGatherer(config, {minute(9), minute(24)}).gather(*find_recorded("store"), {store_path()}, {});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_THAT(report->series, SizeIs(1));
  const auto& alerts = report->series[0].alerts;
  ASSERT_THAT(alerts, SizeIs(2)) << "neither the one that ended before nor the one that was raised after";
  EXPECT_EQ(alerts[0].alert.raised, minute(10));
  EXPECT_EQ(alerts[0].alert.cleared, std::nullopt) << "at the end of the period it stood";
  EXPECT_EQ(alerts[0].alert.ended, AlertEnd::standing);
  EXPECT_FALSE(alerts[0].watch_ended);
  EXPECT_EQ(alerts[1].alert.raised, minute(12));
  EXPECT_TRUE(alerts[1].watch_ended) << "another watch began while it stood";
}

TEST_F(Gather, WhereSamplesAreGoneTheirSummariesAreLeft) {
  config.store.raw_hours = 1;
  {
    const auto store = open_store();
    ASSERT_NE(store, nullptr);
    begin_watch(*store, 0);
    for (int m = 0; m < 60; ++m) append(*store, device("GPU-old"), m, 3 * kBytesPerGiB);
    for (int m = 0; m < 60 * 12; ++m) append(*store, device(), m, 4 * kBytesPerGiB);
  }
  const auto report = ReportGatherer(config, {}).gather(*find_recorded("store"), {store_path()}, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LT(report->samples, 12U * 60) << "retention took the oldest";
  EXPECT_EQ(report->first, kBegin) << "of what is left of them";
  ASSERT_THAT(report->series, SizeIs(2));
  for (const PeriodSeries& s : report->series) {
    const bool is_old = s.view.key.device_id == "GPU-old";
    EXPECT_EQ(s.has_verdict, !is_old) << s.view.key.device_id;
    ASSERT_FALSE(s.history.empty());
    EXPECT_EQ(s.history.front().max, (is_old ? 3 : 4) * kBytesPerGiB);
    EXPECT_EQ(s.first_seen, kBegin);
  }
}

TEST_F(Gather, AStoreWithoutThePeriodSaysWhatItHolds) {
  {
    const auto store = open_store();
    ASSERT_NE(store, nullptr);
  }
  const auto empty = ReportGatherer(config, {}).gather(*find_recorded("store"), {store_path()}, {});
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("it contains no samples; 'vramtrack watch' records some"));
  {
    const auto store = open_store();
    append(*store, device(), 0, kBytesPerGiB);
    append(*store, device(), 30, kBytesPerGiB);
  }
  const auto other =
      ReportGatherer(config, {minute(5000), std::nullopt}).gather(*find_recorded("store"), {store_path()}, {});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("2026-01-05T08:00:00Z to 2026-01-05T08:30:00Z"));
  const auto missing = ReportGatherer(config, {}).gather(*find_recorded("store"), {folder.file("none.db")}, {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("none.db"));
}

TEST_F(Gather, NoticesOfThePeriodAreKept) {
  {
    const auto store = open_store();
    for (const double at : {1.0, 20.0}) {
      append(*store, device(), at, kBytesPerGiB);
      Batch batch;
      Event event;
      event.time = minute(at);
      event.kind = Event::Kind::xid;
      event.text = at < 10 ? "XID 31 early" : "XID 31 late";
      batch.events.push_back(event);
      EXPECT_TRUE(store->append(batch));
    }
  }
  const auto report =
      ReportGatherer(config, {minute(10), std::nullopt}).gather(*find_recorded("store"), {store_path()}, {});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_THAT(report->notices, SizeIs(1));
  EXPECT_EQ(report->notices[0].text, "XID 31 late");
}

}  // namespace
}  // namespace vramtrack
