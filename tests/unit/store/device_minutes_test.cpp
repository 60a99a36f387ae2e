#include <gmock/gmock.h>

#include "store/schema.hpp"
#include "store/sqlite.hpp"
#include "store_fixture.hpp"

namespace vramtrack {
namespace {

using namespace testing;

using Minutes = std::vector<std::pair<std::int64_t, double>>;

class DeviceMinutesTest : public StoreTest {
 protected:
  Batch batch(std::int64_t second, double ratio) {
    Batch batch;
    batch.samples = {{at_s(second), catalog.intern(device_key(0)), 1}};
    DeviceReading reading;
    reading.time = at_s(second);
    reading.device_id = "GPU-0";
    reading.gpu_utilisation_ratio = ratio;
    batch.readings = {reading};
    return batch;
  }
  /// (seconds since at_s(0), ratio)
  Minutes read(const TimeRange& range = {}) {
    auto reader = StoreReader::open(config.path);
    EXPECT_TRUE(reader);
    const auto read = (*reader)->device_minutes("GPU-0", range);
    EXPECT_TRUE(read) << read.error().message;
    Minutes out;
    for (const DeviceMinute& m : *read)
      out.emplace_back((m.start - at_s(0)).count() / kSecond, m.busy_ratio.value_or(-1));
    return out;
  }
};

TEST_F(DeviceMinutesTest, IsTheGreatestOfAMinuteOverFlushesAndWriters) {
  {
    const auto store = open();
    for (const auto& [second, ratio] : Minutes{{0, 0.0}, {10, 0.304}, {20, 0.1}, {70, 0}, {130, 1}}) {
      ASSERT_TRUE(store->append(batch(second, ratio)));
      ASSERT_TRUE(store->flush());
    }
  }
  EXPECT_EQ(read(), (Minutes{{0, 0.31}, {60, 0}, {120, 1}}));
  {
    const auto store = open();
    ASSERT_TRUE(store->append(batch(30, 0.2)));
    ASSERT_TRUE(store->append(batch(80, 0.002)));
  }
  EXPECT_EQ(read(), (Minutes{{0, 0.31}, {60, 0.01}, {120, 1}}));
  EXPECT_EQ(read({at_s(1), at_s(120)}), (Minutes{{60, 0.01}}));
}

TEST_F(DeviceMinutesTest, OfADeviceNobodyToldThereIsNone) {
  {
    const auto store = open();
    Batch b = batch(0, 0);
    b.readings.clear();
    ASSERT_TRUE(store->append(b));
  }
  EXPECT_TRUE(read().empty());
}

TEST_F(DeviceMinutesTest, ExpiresWithTheMinutes) {
  config.minute_days = 1;
  {
    const auto store = open();
    // A block is packed, and old data is deleted, after every 15 minutes of samples.
    for (std::int64_t second = 0; second < 3 * 86400; second += 600) {
      store->keep_time(mark_s(second));
      ASSERT_TRUE(store->append(batch(second, 0.5)));
    }
  }
  const Minutes kept = read();
  ASSERT_FALSE(kept.empty());
  EXPECT_GT(kept.front().first, 86400);
  EXPECT_LT(kept.front().first, 2 * 86400);
}

TEST_F(DeviceMinutesTest, AStoreOfTheFirstSchemaIsReadAndBroughtUpToDate) {
  {
    auto database = sql::Database::open(config.path, sql::Database::Mode::write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(prepare_schema(*database, config.path, 1));
  }
  EXPECT_TRUE(read().empty());
  {
    const auto store = open();
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->append(batch(60, 0.25)));
  }
  EXPECT_EQ(read(), (Minutes{{60, 0.25}}));
}

TEST_F(DeviceMinutesTest, HoldsTheGreatestOfEachGaugeAndWhatIsNotReportedStaysUnknown) {
  {
    const auto store = open();
    const auto append = [&](std::int64_t second, const DeviceGauges& gauges) {
      Batch b = batch(second, 0);
      b.readings[0].gpu_utilisation_ratio.reset();
      b.readings[0].gauges = gauges;
      ASSERT_TRUE(store->append(b));
      ASSERT_TRUE(store->flush());
    };
    append(0, {{}, 61, 298.6, 400, {}, {}});
    append(10, {{}, 58, 301.2, 400, {}, 1.98e9});
    append(20, {{}, {}, {}, {}, {}, 1.2e9});
    append(60, {{}, 40, {}, {}, {}, {}});
  }
  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  const auto minutes = (*reader)->device_minutes("GPU-0");
  ASSERT_TRUE(minutes) << minutes.error().message;
  EXPECT_THAT(*minutes, ::testing::ElementsAre(DeviceMinute{at_s(0), {}, 61, 301, 1.98e9},
                                               DeviceMinute{at_s(60), {}, 40, {}, {}}));
}

TEST_F(DeviceMinutesTest, WhatWasRecordedBeforeThereWereGaugesIsKept) {
  {
    auto database = sql::Database::open(config.path, sql::Database::Mode::write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(prepare_schema(*database, config.path, 11));
    ASSERT_TRUE(database->exec(
        "INSERT INTO series(id,metric,device_id,pid,pid_start_ticks) VALUES(1,'device_used','GPU-0',0,0)"));
    ASSERT_TRUE(database->exec(
        fmt::format("INSERT INTO utilisation VALUES(1,{},37)", at_s(0).time_since_epoch().count() / kSecond).c_str()));
  }
  EXPECT_EQ(read(), (Minutes{{0, 0.37}})) << "of the old schema";
  ASSERT_TRUE(open());
  EXPECT_EQ(read(), (Minutes{{0, 0.37}})) << "brought up to date";
}

}  // namespace
}  // namespace vramtrack
