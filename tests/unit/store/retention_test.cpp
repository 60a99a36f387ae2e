#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>

#include "store/sqlite.hpp"
#include "store_fixture.hpp"

namespace vramtrack {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::int64_t count(const std::string& path, const std::string& query) {
  auto database = sql::Database::open(path, sql::Database::Mode::read);
  return database ? database->integer(query).value().value_or(-1) : -1;
}

/// The expected rollups, computed directly from the samples.
std::vector<Rollup> brute_force(const std::vector<std::pair<std::int64_t, std::uint64_t>>& samples,
                                std::int64_t width_ns) {
  std::map<std::int64_t, std::vector<std::uint64_t>> buckets;
  for (const auto& [time, bytes] : samples) {
    std::int64_t bucket = time / width_ns;
    if (time % width_ns < 0) --bucket;
    buckets[bucket * width_ns].push_back(bytes);
  }
  std::vector<Rollup> result;
  for (const auto& [start, values] : buckets) {
    long double sum = 0;
    for (const std::uint64_t v : values) sum += static_cast<long double>(v);
    result.push_back({at_ns(start), *std::min_element(values.begin(), values.end()),
                      *std::max_element(values.begin(), values.end()),
                      static_cast<double>(sum / static_cast<long double>(values.size())), values.size()});
  }
  return result;
}

void expect_same(const std::vector<Rollup>& got, const std::vector<Rollup>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(iso8601(got[i].start));
    EXPECT_EQ(got[i].start, expected[i].start);
    EXPECT_EQ(got[i].min, expected[i].min);
    EXPECT_EQ(got[i].max, expected[i].max);
    EXPECT_EQ(got[i].count, expected[i].count);
    EXPECT_NEAR(got[i].mean, expected[i].mean, 1.0 + 1e-15 * expected[i].mean);
  }
}

using RetentionTest = StoreTest;

TEST_F(RetentionTest, RollupsAreThoseOfTheSamples) {
  EXPECT_TRUE(rc::check([&] {
    TempFolder own;
    StoreConfig here = config;
    here.path = own.file("vramtrack.db");
    here.raw_hours = here.minute_days = 1e9;
    Catalog fresh;
    const auto steps = *rc::gen::container<std::vector<std::pair<std::uint16_t, std::uint64_t>>>(
        400, rc::gen::pair(rc::gen::inRange<std::uint16_t>(0, 300),
                           rc::gen::weightedOneOf<std::uint64_t>({{3, rc::gen::inRange<std::uint64_t>(0, 1ULL << 38)},
                                                                  {1, rc::gen::arbitrary<std::uint64_t>()}})));
    std::vector<std::pair<std::int64_t, std::uint64_t>> samples[2];
    {
      auto store = Store::open(here, fresh, at_s(0));
      RC_ASSERT(store.has_value());
      std::int64_t time_ns = kStart - 17 * kSecond;
      for (const auto& [step_ds, bytes] : steps) {
        time_ns += step_ds * (kSecond / 10);
        const int series = step_ds % 3 == 0 ? 1 : 0;
        Batch batch;
        batch.samples = {{at_ns(time_ns), fresh.intern(device_key(series)), bytes}};
        RC_ASSERT((*store)->append(batch).has_value());
        samples[series].emplace_back(time_ns, bytes);
      }
      RC_ASSERT((*store)->flush().has_value());
      auto reader = StoreReader::open(here.path);  // part packed, part still in the journal
      RC_ASSERT(reader.has_value());
      for (int series = 0; series < 2; ++series) {
        expect_same((*reader)->rollups(device_key(series), Resolution::minute).value(),
                    brute_force(samples[series], 60 * kSecond));
        expect_same((*reader)->rollups(device_key(series), Resolution::hour).value(),
                    brute_force(samples[series], 3600 * kSecond));
      }
      RC_ASSERT(!::testing::Test::HasFailure());
    }
  }));
}

TEST_F(RetentionTest, RawAndMinutesExpireAndHoursStay) {
  config.raw_hours = 2;
  config.minute_days = 1;
  const SeriesId id = catalog.intern(device_key(0));
  std::vector<std::pair<std::int64_t, std::uint64_t>> samples;
  const std::int64_t seconds = 4 * 86400;
  {
    const auto store = open();
    for (std::int64_t t = 0; t < seconds; t += 10) {
      store->keep_time(mark_s(t));
      Batch batch;
      batch.samples = {{at_s(t), id, static_cast<std::uint64_t>(t % 7777) << 21}};
      if (t % 3600 == 0) batch.events = {{.time = at_s(t), .text = "hour"}};
      ASSERT_TRUE(store->append(batch));
      samples.emplace_back(kStart + t * kSecond, static_cast<std::uint64_t>(t % 7777) << 21);
    }
    EXPECT_THAT(store->take_notices(), IsEmpty());
  }
  const auto raw = scan(config.path);
  EXPECT_THAT(raw.errors, IsEmpty());
  const auto& kept = raw.of(device_key(0));
  ASSERT_FALSE(kept.empty());
  // Never before its retention, and gone within two blocks after it.
  EXPECT_LE(kept.front().first, kStart + (seconds - 7200) * kSecond);
  EXPECT_GE(kept.front().first, kStart + (seconds - 7200 - 2 * 900 - 600) * kSecond);
  EXPECT_EQ(kept.back(), samples.back());

  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  const auto hours = (*reader)->rollups(device_key(0), Resolution::hour);
  ASSERT_TRUE(hours) << hours.error().message;
  expect_same(*hours, brute_force(samples, 3600 * kSecond));
  const auto minutes = (*reader)->rollups(device_key(0), Resolution::minute);
  ASSERT_TRUE(minutes);
  ASSERT_FALSE(minutes->empty());
  EXPECT_LE(minutes->front().start, at_s(seconds - 86400));
  EXPECT_GE(minutes->front().start, at_s(seconds - 86400 - 3600));
  EXPECT_LE(raw.events.size(), 26U);
  EXPECT_GE(raw.events.size(), 24U);

  const auto some = (*reader)->rollups(device_key(0), Resolution::hour, {at_s(3600), at_s(3 * 3600)});
  ASSERT_TRUE(some);
  ASSERT_THAT(*some, SizeIs(2));
  EXPECT_EQ((*some)[0].start, at_s(3600));
  EXPECT_THAT((*reader)->rollups(device_key(5), Resolution::hour).value(), IsEmpty());
  // The hours of past days are in few chunks.
  EXPECT_GE(count(config.path, "SELECT count(*) FROM rollup WHERE resolution_s=3600 AND merged=1"), 2);
  EXPECT_LE(count(config.path, "SELECT count(*) FROM rollup WHERE resolution_s=3600 AND merged=0"), 120);
}

/// One damaged column in the clock's row: nothing within its retention is deleted.
TEST_F(RetentionTest, WhatADamagedClockSaysDeletesNothing) {
  config.raw_hours = 24;
  config.minute_days = 2;
  constexpr std::int64_t kBeforeStart_s = 100 * 86400;  // this machine has been up for long
  const SeriesId id = catalog.intern(device_key(0));
  std::int64_t t = 0;
  const auto watch = [&](std::int64_t seconds) {
    const auto store = open();
    for (const std::int64_t end = t + seconds; t < end; t += 10) {
      ClockMark mark = mark_s(t);
      mark.since_boot += Duration(kBeforeStart_s * kSecond);
      store->keep_time(mark);
      Batch batch;
      batch.samples = {{at_s(t), id, 1}};
      ASSERT_TRUE(store->append(batch));
    }
  };
  watch(3 * 3600);
  for (const char* damage : {"uptime_ns=4611686018427387904", "uptime_ns=uptime_ns+3*86400*1000000000", "uptime_ns='x'",
                             "since_boot_ns=1", "boot_id='boot-0'"}) {
    ASSERT_TRUE(sql::Database::open(config.path, sql::Database::Mode::write)
                    .value()
                    .exec((std::string("UPDATE clock SET ") + damage).c_str()));
    watch(3600);
    EXPECT_EQ(scan(config.path).samples, static_cast<std::size_t>(t / 10)) << damage;
    EXPECT_EQ(count(config.path, "SELECT max(uptime_ns)/1000000000/86400 FROM chunk"), 0) << damage;
  }
}

/// If jobs are short, a block holds hundreds of process ends.
TEST_F(RetentionTest, ManyEventsExpireAsFastAsTheyCome) {
  config.minute_days = 1.0 / 24;
  const SeriesId id = catalog.intern(device_key(0));
  {
    const auto store = open();
    for (std::int64_t t = 0; t < 6 * 3600; t += 10) {
      store->keep_time(mark_s(t));
      Batch batch;
      batch.samples = {{at_s(t), id, 1}};
      for (std::uint32_t i = 0; i < 10; ++i)
        batch.events.push_back({.time = at_s(t), .kind = Event::Kind::process_ended, .pid = i + 1});
      ASSERT_TRUE(store->append(batch));
    }
  }
  const std::int64_t kept = count(config.path, "SELECT count(*) FROM event");
  EXPECT_GE(kept, 3600);  // an hour of them
  EXPECT_LE(kept, 3600 + 2 * 900 + 600);
}

/// The size of the data kept forever per process; docs/formats/store.md has these figures.
TEST_F(RetentionTest, ADeadProcessLeavesLittleAndNeverWhatARollupLacks) {
  config.raw_hours = 1;
  config.minute_days = 1;
  constexpr std::uint32_t kProcesses = 4000;
  std::vector<SeriesKey> keys;
  {
    const auto store = open();
    std::vector<std::pair<SeriesId, std::int64_t>> running;
    for (std::int64_t t = 0; t < (kProcesses + 3 * 1440) * 60; t += 20) {
      if (t % 60 == 0 && keys.size() < kProcesses) {
        const auto pid = static_cast<std::uint32_t>(keys.size() * 7919 % 4'000'000 + 1);
        keys.push_back(
            {Metric::process_used, "GPU-6f3a1c2e-9b1d-4c57-8a53-0e7f2b9d4c10", pid, 5'000'000U + 100U * pid});
        ProcessInfo process{.pid = pid, .start_ticks = keys.back().pid_start_ticks, .user = "alice", .name = "python3"};
        process.command = "python3 -u /home/alice/project/train.py --config configs/resnet50.yaml --batch-size 256";
        catalog.describe(process);
        running.emplace_back(catalog.intern(keys.back()), t + 300);
      }
      store->keep_time(mark_s(t));
      Batch batch;
      batch.samples.push_back({at_s(t), catalog.intern(device_key(0)), 1});
      for (const auto& [id, end] : running) batch.samples.push_back({at_s(t), id, static_cast<std::uint64_t>(t) << 20});
      ASSERT_TRUE(store->append(batch));
      while (!running.empty() && running.front().second <= t) {
        catalog.retire(running.front().first);
        running.erase(running.begin());
      }
    }
  }
  EXPECT_LE(catalog.live(), 2U);
  const std::int64_t pages = count(config.path, "PRAGMA page_count") - count(config.path, "PRAGMA freelist_count");
  EXPECT_LE(pages * 4096 / kProcesses, 500);  // including the recent data
  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  EXPECT_THAT((*reader)->series().value(), SizeIs(kProcesses + 1));
  for (const std::size_t i : {std::size_t{0}, std::size_t{1999}, std::size_t{3999}})
    EXPECT_FALSE((*reader)->rollups(keys[i], Resolution::hour).value().empty());
  EXPECT_EQ(count(config.path, "SELECT count(*) FROM process"), kProcesses);
}

/// A quarter of the samples are dated 2065 by a clock that somebody set: no sample's time makes another one look old.
TEST_F(RetentionTest, WildDatesExpireNothing) {
  config.raw_hours = 1;
  config.minute_days = 1.0 / 24;
  const SeriesId id = catalog.intern(device_key(0));
  {
    const auto store = open();
    for (std::int64_t t = 0; t < 3600; ++t) {
      store->keep_time(mark_s(t));
      const bool wild = t / 900 % 2 == 1;
      Batch batch;
      batch.samples = {{at_s(wild ? 1'250'000'000 + t : t), id, 1}};
      if (t % 60 == 0) batch.events = {{.time = batch.samples[0].time, .text = "minute"}};
      ASSERT_TRUE(store->append(batch));
    }
  }
  const Scan kept = scan(config.path);
  EXPECT_EQ(kept.samples, 3600U);
  EXPECT_THAT(kept.events, SizeIs(60));
}

/// Retention does not depend on the samples' times: a store without a machine time keeps everything.
TEST_F(RetentionTest, WithoutAMachinesTimeNothingExpires) {
  config.raw_hours = 1;
  const SeriesId id = catalog.intern(device_key(0));
  {
    const auto store = open();
    for (std::int64_t t = 0; t < 86400; t += 60) {
      Batch batch;
      batch.samples = {{at_s(t), id, 1}};
      ASSERT_TRUE(store->append(batch));
    }
  }
  EXPECT_EQ(scan(config.path).samples, 1440U);
}

TEST_F(RetentionTest, TheSizeCapTakesRawThenMinutesAndKeepsHours) {
  config.max_size_mb = 1;
  std::vector<SeriesId> ids;
  for (int s = 0; s < 8; ++s) ids.push_back(catalog.intern(device_key(s)));
  std::vector<std::string> notices;
  std::uint64_t noise = 1;
  const std::int64_t seconds = 40 * 3600;
  {
    const auto store = open();
    for (std::int64_t t = 0; t < seconds; t += 2) {
      store->keep_time(mark_s(t));
      Batch batch;
      for (const SeriesId id : ids) {
        noise = noise * 6364136223846793005U + 1442695040888963407U;
        batch.samples.push_back({at_s(t), id, noise >> 24});  // incompressible: 5 bytes per sample
      }
      ASSERT_TRUE(store->append(batch));
    }
    notices = store->take_notices();
  }
  struct stat there {};
  ASSERT_EQ(::stat(config.path.c_str(), &there), 0);
  EXPECT_LE(there.st_size, 1 << 20);
  const Scan raw = scan(config.path);
  EXPECT_THAT(raw.errors, IsEmpty());
  ASSERT_FALSE(raw.of(device_key(0)).empty());
  EXPECT_EQ(raw.of(device_key(0)).back().first, kStart + (seconds - 2) * kSecond);  // the newest are kept
  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  EXPECT_THAT((*reader)->rollups(device_key(3), Resolution::hour).value(), SizeIs(40));
  ASSERT_THAT(notices, SizeIs(1));  // reported once
  EXPECT_THAT(notices[0], HasSubstr("raw samples up to 2026-01-01T"));
  EXPECT_THAT(notices[0], HasSubstr("store.max-size-mb"));

  // So small that not even the minutes fit.
  config.max_size_mb = 0.15;
  {
    const auto store = open();
    for (std::int64_t t = seconds; t < seconds + 20 * 3600; t += 2) {
      store->keep_time(mark_s(t));
      Batch batch;
      batch.samples = {{at_s(t), ids[0], 5}};
      ASSERT_TRUE(store->append(batch));
    }
    notices = store->take_notices();
  }
  EXPECT_THAT(notices, ::testing::Contains(HasSubstr("minute rollups up to")));
  reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  EXPECT_THAT((*reader)->rollups(device_key(0), Resolution::hour).value(), SizeIs(60));
  EXPECT_LT((*reader)->rollups(device_key(3), Resolution::minute).value().size(), 2400U);
}

}  // namespace
}  // namespace vramtrack
