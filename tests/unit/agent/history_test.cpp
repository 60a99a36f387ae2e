#include "agent/server/history.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "../temp_folder.hpp"
#include "agent/server/api_json.hpp"
#include "store/store.hpp"

namespace vramtrack::agent {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

class HistoryTest : public ::testing::Test {
 protected:
  static constexpr Timestamp kStart{seconds{1767312000}};  // 2026-01-02T00:00:00Z

  void SetUp() override { path_ = folder_.file("store.db"); }

  /// Records two series, with value 1000 * minute + second and its double, every `period` for `lasting`.
  void record(seconds period, seconds lasting, StoreConfig config = {}) {
    config.path = path_;
    Catalog catalog;
    auto store = Store::open(config, catalog, kStart);
    ASSERT_TRUE(store) << store.error().message;
    const SeriesId a = catalog.intern(key_);
    const SeriesId b = catalog.intern(process_);
    for (seconds t{0}; t < lasting; t += period) {
      (*store)->keep_time({.boot_id = "boot", .since_boot = t, .wall = kStart + t, .stamp = kStart + t});
      Batch batch;
      batch.samples = {{kStart + t, a, value(t)}, {kStart + t, b, 2 * value(t)}};
      ASSERT_TRUE((*store)->append(batch));
    }
    ASSERT_TRUE((*store)->flush());
  }
  static std::uint64_t value(seconds t) { return static_cast<std::uint64_t>(1000 * (t.count() / 60) + t.count() % 60); }
  [[nodiscard]] HistoryQuery query(Duration from, Duration to, std::size_t points) const {
    return {{key_}, {kStart + from, kStart + to, points}, std::nullopt};
  }

  SeriesKey key_{Metric::device_used, "GPU-1", 0, 0};
  SeriesKey process_{Metric::process_used, "GPU-1", 42, 7};
  TempFolder folder_;
  std::string path_;
};

TEST_F(HistoryTest, RawSamplesAsTheyAre) {
  record(seconds{5}, minutes{10});
  const auto h = read_history(path_, query(seconds{0}, minutes{10}, 600));
  ASSERT_TRUE(h) << h.error().message;
  EXPECT_EQ(h->grain, Grain::raw);
  ASSERT_EQ(h->series[0].time_s.size(), 120U);
  for (std::size_t i = 0; i < 120; ++i) {
    EXPECT_EQ(h->series[0].time_s[i], 1767312000.0 + static_cast<double>(5 * i));
    EXPECT_EQ(h->series[0].min[i], value(seconds{5 * i}));
    EXPECT_EQ(h->series[0].max[i], h->series[0].min[i]);
    EXPECT_EQ(h->series[0].mean[i], static_cast<double>(h->series[0].min[i]));
  }
}

TEST_F(HistoryTest, BoundsAreHalfOpen) {
  record(seconds{5}, minutes{10});
  const auto h = read_history(path_, query(seconds{10}, seconds{20}, 100));
  ASSERT_TRUE(h);
  EXPECT_THAT(h->series[0].min, ::testing::ElementsAre(10, 15));
}

TEST_F(HistoryTest, FewPointsKeepLeastMeanAndGreatest) {
  record(seconds{1}, minutes{10});
  const auto h = read_history(path_, query(seconds{0}, minutes{10}, 20));  // 30 s each
  ASSERT_TRUE(h);
  EXPECT_EQ(h->grain, Grain::raw);
  ASSERT_EQ(h->series[0].time_s.size(), 20U);
  EXPECT_EQ(h->series[0].min[1], 30U);
  EXPECT_EQ(h->series[0].max[1], 59U);
  EXPECT_DOUBLE_EQ(h->series[0].mean[1], 44.5);
  EXPECT_EQ(h->series[0].min[2], 1000U);
}

TEST_F(HistoryTest, LongRangesComeFromMinutesAndHours) {
  record(seconds{10}, hours{5});
  const auto minute = read_history(path_, query(seconds{0}, hours{5}, 300));
  ASSERT_TRUE(minute);
  EXPECT_EQ(minute->grain, Grain::minute);
  ASSERT_EQ(minute->series[0].time_s.size(), 300U);
  EXPECT_EQ(minute->series[0].max[7], 7050U);
  EXPECT_DOUBLE_EQ(minute->series[0].mean[7], 7025);
  const auto hour = read_history(path_, query(seconds{0}, hours{5}, 5));
  ASSERT_TRUE(hour);
  EXPECT_EQ(hour->grain, Grain::hour);
  ASSERT_EQ(hour->series[0].time_s.size(), 5U);
  EXPECT_EQ(hour->series[0].min[1], 60000U);
  EXPECT_EQ(hour->series[0].max[1], 119050U);
}

TEST_F(HistoryTest, BeforeTheFirstMinuteHoursStandIn) {
  StoreConfig config;
  config.raw_hours = 1;
  config.minute_days = 0.125;  // three hours
  record(seconds{10}, hours{8}, config);
  const auto h = read_history(path_, query(seconds{0}, hours{8}, 480));
  ASSERT_TRUE(h);
  EXPECT_EQ(h->grain, Grain::minute);
  const HistoryColumns& c = h->series[0];
  EXPECT_EQ(c.time_s.front(), 1767312000.0);
  EXPECT_EQ(c.max.front(), 59050U) << "an hour's greatest";
  EXPECT_EQ(c.max.back(), value(hours{8} - seconds{10}));
  EXPECT_TRUE(std::is_sorted(c.time_s.begin(), c.time_s.end()));
  EXPECT_GT(c.time_s.size(), 100U);
  EXPECT_LT(c.time_s.size(), 480U);
}

TEST_F(HistoryTest, SeveralSeriesInTheOrderAskedFor) {
  record(seconds{5}, minutes{1});
  HistoryQuery q = query(seconds{0}, minutes{1}, 100);
  q.keys = {process_, {Metric::device_used, "GPU-9", 0, 0}, key_};
  for (const auto grain : {Grain::raw, Grain::minute}) {
    q.grain = grain;
    const auto h = read_history(path_, q);
    ASSERT_TRUE(h);
    ASSERT_EQ(h->series.size(), 3U);
    EXPECT_EQ(h->series[0].max.back(), 110U);
    EXPECT_TRUE(h->series[1].time_s.empty());
    EXPECT_EQ(h->series[2].max.back(), 55U);
  }
}

TEST_F(HistoryTest, GaugesAreTheGreatestOfTheMinutesOfAPoint) {
  Catalog catalog;
  StoreConfig config;
  config.path = path_;
  auto store = Store::open(config, catalog, kStart);
  ASSERT_TRUE(store);
  for (int minute = 0; minute < 4; ++minute) {
    Batch batch;
    const Timestamp time = kStart + minutes{minute};
    batch.samples = {{time, catalog.intern(key_), 1}};
    DeviceReading reading;
    reading.time = time;
    reading.device_id = "GPU-1";
    reading.gpu_utilisation_ratio = 0.25 * minute;
    reading.gauges.power_watts = 300 - minute;
    if (minute == 3) reading.gauges.sm_clock_hertz = 1.98e9;
    batch.readings = {reading};
    ASSERT_TRUE((*store)->append(batch));
  }
  ASSERT_TRUE((*store)->flush());
  const HistoryRange range{kStart, kStart + minutes{4}, 2};
  const auto h = read_gauges(path_, "GPU-1", range);
  ASSERT_TRUE(h) << h.error().message;
  EXPECT_DOUBLE_EQ(h->step_s, 120);
  EXPECT_THAT(h->time_s, ::testing::ElementsAre(1767312000, 1767312120));
  EXPECT_THAT(gauges_json("GPU-1", range, *h),
              HasSubstr(R"("busy_ratio":[0.25,0.75],"power_watts":[300,298],"sm_clock_hertz":[null,1980000000],)"
                        R"("t":[1767312000,1767312120],"temperature_celsius":[null,null],)"));
  const auto none = read_gauges(path_, "GPU-9", range);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->time_s.empty());
}

TEST_F(HistoryTest, WhatCannotBeReadIsSaid) {
  EXPECT_FALSE(read_history(path_, query(seconds{0}, minutes{1}, 10))) << "no store";
  record(seconds{5}, minutes{1});
  HistoryQuery q = query(seconds{0}, hours{7}, 10);
  q.grain = Grain::raw;
  EXPECT_THAT(read_history(path_, q).error().message, HasSubstr("at most 6 hours"));
}

TEST(HistoryJson, IsWhatATreeOfItWouldBe) {
  using nlohmann::json;
  HistoryQuery query;
  query.keys = {{Metric::device_used, "GPU-\"1\"\n\xff", 0, 0}, {Metric::process_used, "GPU-2", 42, 7}};
  query.range.from = Timestamp{seconds{1767312000}};
  query.range.to = Timestamp{std::chrono::milliseconds{1767312004567}};
  History history;
  history.grain = Grain::minute;
  history.step_s = 0.1;
  history.series = {{{1767312000, 1767312001.2345678, 1767312002.5},
                     {0, 1, 18'446'744'073'709'551'615U},
                     {0, 1.5, 9007199254740992},
                     {0, 2, 18'446'744'073'709'551'615U}},
                    {}};
  const std::string text = history_json(query, history);
  const json got = json::parse(text);
  EXPECT_EQ(got["from"], "2026-01-02T00:00:00Z");
  EXPECT_EQ(got["to"], "2026-01-02T00:00:04.567Z");
  EXPECT_EQ(got["resolution"], "minute");
  EXPECT_EQ(got["step_s"], 0.1);
  ASSERT_EQ(got["series"].size(), 2U);
  const json& first = got["series"][0];
  EXPECT_THAT(first["key"].get<std::string>(), HasSubstr("GPU-\"1\""));
  EXPECT_EQ(first["t"], json({1767312000, 1767312001.235, 1767312002.5}));
  EXPECT_EQ(first["min"], json({0, 1, 18'446'744'073'709'551'615U}));
  EXPECT_EQ(first["mean"], json({0, 2, 9007199254740992}));
  EXPECT_EQ(first["max"], json({0, 2, 18'446'744'073'709'551'615U}));
  EXPECT_EQ(got["series"][1]["t"], json::array());
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

/// Only the text of the longest answer is kept in memory.
TEST(HistoryJson, TakesTheMemoryOfItsText) {
  HistoryQuery query;
  History history;
  for (std::uint32_t pid = 1; pid <= 40; ++pid) {
    query.keys.push_back({Metric::process_used, "GPU-1", pid, 7});
    HistoryColumns columns;
    for (std::uint64_t i = 0; i < kMostPoints / 40; ++i) {
      columns.time_s.push_back(1767312000.123 + 4.0 * static_cast<double>(i));
      columns.min.push_back(2'000'000'000U + i);
      columns.max.push_back(2'000'000'000U + i);
      columns.mean.push_back(2e9 + static_cast<double>(i));
    }
    history.series.push_back(std::move(columns));
  }
  const std::string text = history_json(query, history);
  EXPECT_GT(text.size(), 9'000'000U);
  EXPECT_LT(text.capacity(), text.size() * 5 / 4) << "kJsonBytesAPoint is about right";
}

}  // namespace
}  // namespace vramtrack::agent
