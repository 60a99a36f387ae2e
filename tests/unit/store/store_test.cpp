#include "store/store.hpp"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <algorithm>

#include "store/catalog_writer.hpp"
#include "store/schema.hpp"
#include "store/sqlite.hpp"
#include "store_fixture.hpp"

namespace vramtrack {
namespace {

using namespace testing;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Values = std::vector<std::pair<std::int64_t, std::uint64_t>>;

TEST_F(StoreTest, WhatWasAppendedIsReadBack) {
  const SeriesId device = catalog.intern(device_key(0)), process = catalog.intern(process_key(0, 42));
  catalog.describe(DeviceInfo{.id = "GPU-0",
                              .index = 0,
                              .name = "H200",
                              .pci_bus_id = "0000:01:00.0",
                              .parent_id = "GPU-x",
                              .capacity_bytes = 141ULL << 30,
                              .shares_host_memory = true});
  ProcessInfo info{.pid = 42,
                   .start_ticks = 1042,
                   .user = "ada",
                   .command = "python train.py",
                   .name = "python",
                   .kind = "C",
                   .cgroup = "/a/b",
                   .container = "c0ffee",
                   .pod = "p",
                   .slurm_job = "7.0",
                   .framework = "PyTorch",
                   .ns_pid = 17};
  catalog.describe(info);
  Values expected;
  {
    const auto store = open();
    Batch batch;
    for (int t = 0; t < 100; ++t) {
      batch.clear();
      batch.samples = {{at_s(t), device, 1000U + static_cast<std::uint64_t>(t)}};
      if (t % 3 == 0) batch.samples.push_back({at_s(t), process, static_cast<std::uint64_t>(t)});
      ASSERT_TRUE(store->append(batch));
      expected.emplace_back(kStart + t * kSecond, 1000 + t);
    }
  }
  const Scan all = scan(config.path);
  EXPECT_THAT(all.errors, IsEmpty());
  EXPECT_EQ(all.of(device_key(0)), expected);
  EXPECT_THAT(all.of(process_key(0, 42)), SizeIs(34));  // a gap is a gap
  ASSERT_NE(all.catalog.device("GPU-0"), nullptr);
  EXPECT_EQ(*all.catalog.device("GPU-0"), *catalog.device("GPU-0"));
  ASSERT_NE(all.catalog.process(42, 1042), nullptr);
  EXPECT_EQ(*all.catalog.process(42, 1042), info);
}

TEST_F(StoreTest, FactsBesideMemoryReturnAsTheyWere) {
  const SeriesKey busy{Metric::device_busy, "GPU-0", 0, 0, {}};
  const SeriesKey read{Metric::process_read, "GPU-0", 42, 1042, {}};
  {
    const auto store = open();
    Batch batch;
    batch.samples = {{at_s(0), catalog.intern(device_key(0)), 1000},
                     {at_s(0), catalog.intern(busy), 3700},
                     {at_s(0), catalog.intern(read), 5ULL << 40}};
    ASSERT_TRUE(store->append(batch));
  }
  const Scan all = scan(config.path);
  EXPECT_THAT(all.errors, IsEmpty());
  EXPECT_EQ(all.of(busy), (Values{{kStart, 3700}}));
  EXPECT_EQ(all.of(read), (Values{{kStart, 5LL << 40}}));
}

TEST_F(StoreTest, AFileHoldsOneMachine) {
  SeriesKey far = process_key(0, 42);
  far.host = "node7";
  const SeriesId id = catalog.intern(far);
  Batch batch;
  batch.samples = {{at_s(0), id, 1000}};
  const auto store = open();
  Status appended = store->append(batch);
  if (appended) appended = store->flush();
  ASSERT_FALSE(appended);
  EXPECT_NE(appended.error().message.find("node7"), std::string::npos) << appended.error().message;
}

/// Any samples: gaps, equal stamps, a series that runs backward, any 64-bit time and value.
TEST_F(StoreTest, AnySamplesReturnExactly) {
  struct Step {
    std::uint8_t series;
    std::int64_t time_ns;
    std::uint64_t bytes;
    bool flush;
  };
  const auto gen_time =
      rc::gen::weightedOneOf<std::int64_t>({{8, rc::gen::map(rc::gen::inRange<std::int64_t>(0, 4'000),
                                                             [](std::int64_t s) { return kStart + s * kSecond / 2; })},
                                            {1, rc::gen::arbitrary<std::int64_t>()},
                                            {1, rc::gen::element<std::int64_t>(INT64_MIN, INT64_MAX, 0, -1)}});
  const auto gen_step = rc::gen::map(rc::gen::tuple(rc::gen::inRange<std::uint8_t>(0, 4), gen_time,
                                                    rc::gen::arbitrary<std::uint64_t>(), rc::gen::inRange(0, 10)),
                                     [](const std::tuple<std::uint8_t, std::int64_t, std::uint64_t, int>& t) {
                                       return Step{std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t) == 0};
                                     });
  config.raw_hours = 1e9;
  int round = 0;
  EXPECT_TRUE(rc::check([&] {
    const auto steps = *rc::gen::container<std::vector<Step>>(gen_step).as("steps");
    config.path = folder.file(std::to_string(round++) + ".db");
    std::map<int, Values> expected;
    {
      const auto store = open();
      for (const Step& step : steps) {
        Batch batch;
        batch.samples = {{at_ns(step.time_ns), catalog.intern(device_key(step.series)), step.bytes}};
        RC_ASSERT(store->append(batch).has_value());
        if (step.flush) RC_ASSERT(store->flush().has_value());
        expected[step.series].emplace_back(step.time_ns, step.bytes);
      }
    }
    const Scan all = scan(config.path);
    RC_ASSERT(all.errors.empty());
    for (auto& [series, values] : expected) {
      std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      RC_ASSERT(all.of(device_key(series)) == values);
    }
    RC_ASSERT(all.samples == steps.size());
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(config.path + suffix);
  }));
}

TEST_F(StoreTest, WhatAKindOfEventHasBesidesItsTextIsKept) {
  Event ended{.time = at_s(1), .kind = Event::Kind::process_ended, .pid = 7, .pid_start_ticks = 8, .text = "gone"};
  ended.ran_out_of_memory = ended.killed_by_host = true;
  Event grown{.time = at_s(2), .kind = Event::Kind::capacity, .device_id = "GPU-0"};
  grown.capacity_bytes = 24ULL << 30U;
  Event started{.time = at_s(3), .kind = Event::Kind::watch_started};
  started.went_on = true;
  Event told_before_it_had_a_code{.time = at_s(4), .kind = Event::Kind::process_ended, .text = "out of memory"};
  Event lines{.time = at_s(5), .kind = Event::Kind::lifetimes, .pid = 7, .pid_start_ticks = 8};
  lines.sites = {{"train.py:57 step", 1e9, 10, 0, 3, {{60, 120, 2e6, 1e6}}}, {"model.py:4 forward", 5, 1, 2, 0, {}}};
  {
    const auto store = open();
    Batch batch;
    batch.samples = {{at_s(4), catalog.intern(device_key(0)), 1}};
    batch.events = {ended, grown, started, told_before_it_had_a_code, lines};
    ASSERT_TRUE(store->append(batch));
  }
  const Scan all = scan(config.path, {}, true);
  ASSERT_THAT(all.events, SizeIs(5));
  EXPECT_EQ(all.events[4].sites, lines.sites);
  EXPECT_EQ(all.events[4].text, "");
  EXPECT_TRUE(all.events[0].ran_out_of_memory);
  EXPECT_TRUE(all.events[0].killed_by_host);
  EXPECT_EQ(all.events[1].capacity_bytes, 24ULL << 30U);
  EXPECT_TRUE(all.events[2].went_on);
  EXPECT_FALSE(all.events[2].knew_runs);
  EXPECT_TRUE(all.events[3].ran_out_of_memory);
}

TEST_F(StoreTest, BatchesAreInTimeOrderAndEndAtEvents) {
  const SeriesId id = catalog.intern(device_key(0)), other = catalog.intern(device_key(1));
  {
    const auto store = open();
    for (int t = 0; t < 3000; ++t) {
      Batch batch;
      batch.samples = {{at_s(t), id, 1}, {at_s(t), other, 2}};
      if (t % 500 == 7)
        batch.events = {Event{.time = at_s(t),
                              .kind = Event::Kind::xid,
                              .device_id = "GPU-0",
                              .pid = 5,
                              .pid_start_ticks = 6,
                              .text = "fell off the bus",
                              .xid = 79},
                        Event{.time = at_s(t), .kind = Event::Kind::note, .text = "n"}};
      ASSERT_TRUE(store->append(batch));
    }
  }
  const Scan all = scan(config.path, {}, true);
  EXPECT_THAT(all.errors, IsEmpty());
  ASSERT_THAT(all.events, SizeIs(12));
  EXPECT_EQ(all.events[0].kind, Event::Kind::xid);
  EXPECT_EQ(all.events[0].xid, 79U);
  EXPECT_EQ(all.events[0].text, "fell off the bus");
  EXPECT_EQ(all.events[0].pid_start_ticks, 6U);
  EXPECT_EQ(all.events[1].kind, Event::Kind::note);
  EXPECT_EQ(all.samples, 6000U);
  Timestamp last = at_s(-1);
  for (const Batch& batch : all.batches) {
    for (const Sample& sample : batch.samples) {
      ASSERT_LE(last, sample.time);
      last = sample.time;
      for (const Event& event : batch.events) EXPECT_EQ(sample.time, event.time);
    }
    // Both samples of an instant are in one batch.
    if (!batch.samples.empty()) {
      EXPECT_EQ(batch.samples.size() % 2, 0U);
    }
  }
}

TEST_F(StoreTest, ARangeGivesExactlyItsSamples) {
  const SeriesId id = catalog.intern(device_key(0));
  {
    const auto store = open();
    Batch batch;
    for (int t = 0; t < 4000; ++t) batch.samples.push_back({at_s(t), id, static_cast<std::uint64_t>(t)});
    batch.events = {{.time = at_s(10), .text = "outside"}, {.time = at_s(2500), .text = "inside"}};
    ASSERT_TRUE(store->append(batch));
  }
  const Scan some = scan(config.path, {at_s(950), at_s(2600)});
  ASSERT_THAT(some.of(device_key(0)), SizeIs(1650));
  EXPECT_EQ(some.of(device_key(0)).front().second, 950U);
  EXPECT_EQ(some.of(device_key(0)).back().second, 2599U);
  ASSERT_THAT(some.events, SizeIs(1));
  EXPECT_EQ(some.events[0].text, "inside");
  EXPECT_EQ(scan(config.path, {at_s(5000), {}}).samples, 0U);
  EXPECT_EQ(scan(config.path, {at_s(10), at_s(10)}).samples, 0U);
}

TEST_F(StoreTest, AReopenedStoreGoesOn) {
  Values expected;
  for (int run = 0; run < 6; ++run) {
    Catalog fresh;  // a run's ids need not be those of the previous run
    for (int other = 0; other < run; ++other) (void)fresh.intern(device_key(10 + other));
    const SeriesId id = fresh.intern(device_key(0));
    auto store = Store::open(config, fresh, at_s(run * 400));
    ASSERT_TRUE(store) << store.error().message;
    Batch batch;
    for (int t = 0; t < 400; ++t) {
      const std::int64_t s = run * 400 + t;
      batch.samples.push_back({at_s(s), id, static_cast<std::uint64_t>(s * s)});
      expected.emplace_back(kStart + s * kSecond, s * s);
    }
    ASSERT_TRUE((*store)->append(batch));
    EXPECT_THAT((*store)->take_notices(), IsEmpty());
  }
  const Scan all = scan(config.path);
  EXPECT_THAT(all.errors, IsEmpty());
  EXPECT_EQ(all.of(device_key(0)), expected);
  EXPECT_THAT(all.series, SizeIs(1));
}

TEST_F(StoreTest, UnflushedSamplesAreAtMostFlushSeconds) {
  const SeriesId id = catalog.intern(device_key(0));
  const auto store = open();
  for (int t = 0; t < 1000; ++t) {
    Batch batch;
    batch.samples = {{at_s(t), id, 1}};
    ASSERT_TRUE(store->append(batch));
    if (t % 97 == 0) {
      const auto committed = scan(config.path).of(device_key(0));  // a reader beside the writer
      const std::int64_t last = committed.empty() ? -1 : (committed.back().first - kStart) / kSecond;
      EXPECT_LE(t - last, 5);
      EXPECT_THAT(committed, SizeIs(last + 1));
    }
  }
}

TEST_F(StoreTest, AReaderSeesTheFileAsItWasAtItsFirstRead) {
  const SeriesId id = catalog.intern(device_key(0));
  const auto store = open();
  const auto append = [&](int from, int to) {
    Batch batch;
    for (int t = from; t < to; ++t) batch.samples.push_back({at_s(t), id, 7});
    ASSERT_TRUE(store->append(batch));
    ASSERT_TRUE(store->flush());
  };
  for (int t = 0; t < 3000; t += 10) append(t, t + 10);
  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  Catalog seen;
  Batch batch;
  ASSERT_TRUE((*reader)->read(seen, batch).value());
  std::size_t samples = batch.samples.size();
  for (int t = 3000; t < 6000; t += 10) append(t, t + 10);  // packs blocks and deletes journal rows meanwhile
  while ((*reader)->read(seen, batch).value()) samples += batch.samples.size();
  EXPECT_EQ(samples, 3000U);
  EXPECT_FALSE((*reader)->read(seen, batch).value());
  (*reader)->select({});
  samples = 0;
  while ((*reader)->read(seen, batch).value()) samples += batch.samples.size();
  EXPECT_EQ(samples, 6000U);
}

TEST_F(StoreTest, AlertsAreKeptWithEveryFigure) {
  const SeriesId id = catalog.intern(process_key(3, 77));
  catalog.describe(ProcessInfo{.pid = 77, .start_ticks = 1077, .command = "leaky"});
  Alert alert;
  alert.series = id;
  alert.raised = at_s(60);
  alert.severity = Severity::warning;
  alert.finding.detector = "judge";
  alert.finding.leak = true;
  alert.finding.state = State::leaking;
  alert.finding.pattern = Pattern::gradual_leak;
  alert.finding.spike = SpikeOutcome::stabilised;
  alert.finding.confidence = 0.93;
  alert.finding.growth_bytes_per_s = {1.5, 2.5, 3.5};
  alert.finding.r_squared = 0.99;
  alert.finding.oom_in_s = Interval{10, 20, 30};
  alert.finding.onset = at_s(5);
  alert.finding.because = "it grows";
  const auto store = open();
  ASSERT_TRUE(store->record(alert));
  Alert other = alert;
  other.raised = at_s(61);
  other.finding.oom_in_s.reset();
  other.finding.onset.reset();
  ASSERT_TRUE(store->record(other));
  alert.cleared = at_s(90);
  alert.ended = AlertEnd::process_ended;
  alert.end_reason = "pid 77 ended";
  ASSERT_TRUE(store->record(alert));  // the same alert: replaced

  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  Catalog seen;
  const auto alerts = (*reader)->alerts(seen);
  ASSERT_TRUE(alerts) << alerts.error().message;
  ASSERT_THAT(*alerts, SizeIs(2));
  const Alert& got = alerts->front();
  EXPECT_EQ(seen.key(got.series), process_key(3, 77));
  EXPECT_EQ(seen.process(77, 1077)->command, "leaky");
  EXPECT_EQ(got.raised, alert.raised);
  EXPECT_EQ(got.cleared, alert.cleared);
  EXPECT_EQ(got.ended, alert.ended);
  EXPECT_EQ(got.severity, alert.severity);
  EXPECT_EQ(got.end_reason, alert.end_reason);
  EXPECT_EQ(got.finding.detector, "judge");
  EXPECT_TRUE(got.finding.leak);
  EXPECT_EQ(got.finding.state, State::leaking);
  EXPECT_EQ(got.finding.pattern, Pattern::gradual_leak);
  EXPECT_EQ(got.finding.spike, SpikeOutcome::stabilised);
  EXPECT_EQ(got.finding.confidence, 0.93);
  EXPECT_EQ(got.finding.growth_bytes_per_s, alert.finding.growth_bytes_per_s);
  EXPECT_EQ(got.finding.r_squared, 0.99);
  EXPECT_EQ(got.finding.oom_in_s, alert.finding.oom_in_s);
  EXPECT_EQ(got.finding.onset, alert.finding.onset);
  EXPECT_EQ(got.finding.because, "it grows");
  EXPECT_FALSE(alerts->back().finding.oom_in_s);
  EXPECT_FALSE(alerts->back().finding.onset);
  EXPECT_FALSE(alerts->back().cleared);
}

TEST_F(StoreTest, ALaterDescriptionReplacesAndAnEmptyOneDoesNot) {
  const SeriesId id = catalog.intern(process_key(0, 9));
  catalog.describe(ProcessInfo{.pid = 9, .start_ticks = 1009, .user = "ada", .command = "a"});
  Batch batch;
  batch.samples = {{at_s(0), id, 1}};
  {
    const auto store = open();
    ASSERT_TRUE(store->append(batch));
    ASSERT_TRUE(store->flush());
    catalog.describe(ProcessInfo{.pid = 9, .start_ticks = 1009, .framework = "vLLM"});
    batch.samples[0].time = at_s(1);
    ASSERT_TRUE(store->append(batch));
  }
  Catalog later;  // a new run with less information
  batch.samples = {{at_s(2), later.intern(process_key(0, 9)), 1}};
  later.describe(ProcessInfo{.pid = 9, .start_ticks = 1009, .command = "b"});
  {
    auto store = Store::open(config, later, at_s(2));
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->append(batch));
  }
  const Scan all = scan(config.path);
  const ProcessInfo* process = all.catalog.process(9, 1009);
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->user, "ada");
  EXPECT_EQ(process->framework, "vLLM");
  EXPECT_EQ(process->command, "b");
}

TEST_F(StoreTest, ExtentsCoverPackedAndJournalledSamples) {
  const SeriesId a = catalog.intern(device_key(0)), b = catalog.intern(device_key(1));
  const auto store = open();
  Batch batch;
  for (int t = 0; t < 2000; ++t) {
    batch.samples.push_back({at_s(t), a, 1});
    if (t > 1990) batch.samples.push_back({at_s(t), b, 1});
  }
  ASSERT_TRUE(store->append(batch));
  ASSERT_TRUE(store->flush());
  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  const auto series = (*reader)->series();
  ASSERT_TRUE(series);
  ASSERT_THAT(*series, SizeIs(2));
  EXPECT_EQ((*series)[0].key, device_key(0));
  EXPECT_EQ((*series)[0].first, at_s(0));
  EXPECT_EQ((*series)[0].last, at_s(1999));
  EXPECT_EQ((*series)[1].first, at_s(1991));
  const auto extent = (*reader)->raw_extent();
  ASSERT_TRUE(extent && *extent);
  EXPECT_EQ((*extent)->first, at_s(0));
  EXPECT_EQ((*extent)->second, at_s(1999));
}

TEST_F(StoreTest, RelativeTimesAndDatesDoNotMix) {
  const SeriesId id = catalog.intern(device_key(0));
  Batch batch;
  batch.samples = {{at_s(0), id, 1}};
  {
    const auto store = open();
    ASSERT_TRUE(store->append(batch));
  }
  Catalog relative;
  relative.clock_is_relative = true;
  batch.samples = {{at_ns(0), relative.intern(device_key(0)), 1}};
  auto store = Store::open(config, relative, at_s(0));
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->append(batch));
  const Status refused = (*store)->flush();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("another file"));
  EXPECT_EQ(scan(config.path).samples, 1U);
}

TEST(StorePath, FollowsXdg) {
  ::setenv("XDG_STATE_HOME", "/somewhere", 1);
  EXPECT_EQ(default_store_path(), "/somewhere/vramtrack/vramtrack.db");
  ::setenv("XDG_STATE_HOME", "relative", 1);  // invalid by the specification
  ::setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(default_store_path(), "/home/ada/.local/state/vramtrack/vramtrack.db");
  ::unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(default_store_path(), "/home/ada/.local/state/vramtrack/vramtrack.db");
}

/// A watch over months: processes come, are retired once they have ended, and none of their data is lost.
TEST_F(StoreTest, RetiredProcessesAreAllInTheFile) {
  const SeriesId device = catalog.intern(device_key(0));
  std::vector<SeriesKey> keys;
  {
    const auto store = open();
    for (std::uint32_t pid = 1; pid <= 3000; ++pid) {
      keys.push_back(process_key(static_cast<int>(pid % 3), pid));
      const SeriesId id = catalog.intern(keys.back());
      catalog.describe(ProcessInfo{.pid = pid, .start_ticks = 1000U + pid, .command = "train " + std::to_string(pid)});
      Batch batch;
      batch.samples = {{at_s(pid), device, pid}, {at_s(pid), id, pid}};
      if (pid % 100 == 0) batch.events = {{.time = at_s(pid), .kind = Event::Kind::process_ended, .pid = pid}};
      ASSERT_TRUE(store->append(batch));
      if (pid % 500 == 0) {
        Alert alert;
        alert.series = id;
        alert.raised = at_s(pid);
        ASSERT_TRUE(store->record(alert));
      }
      catalog.retire(id);  // its samples are still waiting: a flush is every 5 s
    }
    EXPECT_THAT(store->take_notices(), IsEmpty());
  }
  EXPECT_EQ(catalog.live(), 1U);
  const Scan found = scan(config.path);
  EXPECT_THAT(found.errors, IsEmpty());
  for (const SeriesKey& key : keys) {
    ASSERT_THAT(found.of(key), SizeIs(1)) << key.pid;
    const ProcessInfo* process = found.catalog.process(key.pid, key.pid_start_ticks);
    ASSERT_NE(process, nullptr) << key.pid;
    EXPECT_EQ(process->command, "train " + std::to_string(key.pid));
  }
  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  Catalog other;
  EXPECT_THAT((*reader)->alerts(other).value(), SizeIs(6));
}

TEST_F(StoreTest, AKeyThatWasRetiredAndCameBackIsOneSeriesInTheFile) {
  const SeriesKey key = process_key(0, 7);
  {
    const auto store = open();
    for (std::int64_t t = 0; t < 40; ++t) {  // within one flush and over several
      const SeriesId id = catalog.intern(key);
      catalog.describe(ProcessInfo{.pid = 7, .start_ticks = 1007, .command = "command " + std::to_string(t)});
      Batch batch;
      batch.samples = {{at_s(t), id, static_cast<std::uint64_t>(t)}};
      ASSERT_TRUE(store->append(batch));
      catalog.retire(id);
    }
    EXPECT_THAT(store->take_notices(), IsEmpty());
  }
  const Scan found = scan(config.path);
  EXPECT_THAT(found.errors, IsEmpty());
  EXPECT_THAT(found.series, SizeIs(1));
  EXPECT_THAT(found.of(key), SizeIs(40));
  EXPECT_EQ(found.catalog.process(7, 1007)->command, "command 39");
}

/// A process that is described but never has memory reported would otherwise leave a row without references.
TEST_F(StoreTest, AProcessWithoutSamplesLeavesNoRow) {
  const SeriesId sampled = catalog.intern(process_key(0, 1));
  catalog.intern(process_key(0, 2));
  for (const std::uint32_t pid : {1U, 2U}) catalog.describe(ProcessInfo{.pid = pid, .start_ticks = 1000U + pid});
  {
    const auto store = open();
    Batch batch;
    batch.samples = {{at_s(0), sampled, 1}};
    ASSERT_TRUE(store->append(batch));
    ASSERT_TRUE(store->flush());
  }
  auto database = sql::Database::open(config.path, sql::Database::Mode::read);
  ASSERT_TRUE(database);
  EXPECT_EQ(database->integer("SELECT count(*) FROM process").value(), 1);
  EXPECT_EQ(database->integer("SELECT count(*) FROM series").value(), 1);
}

TEST_F(StoreTest, WhatTheWriterRemembersIsBounded) {
  auto database = sql::Database::open(config.path, sql::Database::Mode::write);
  ASSERT_TRUE(database);
  ASSERT_TRUE(prepare_schema(*database, config.path));
  auto writer = CatalogWriter::open(*database, catalog);
  ASSERT_TRUE(writer);
  std::size_t most = 0, most_refused = 0;
  const auto churn = [&](std::uint32_t first, std::uint32_t last, bool refused) {
    for (std::uint32_t pid = first; pid < last; ++pid) {
      const SeriesId id = catalog.intern(process_key(0, pid));
      catalog.describe(ProcessInfo{.pid = pid, .start_ticks = 1000U + pid, .command = "train"});
      ASSERT_NE(writer->id_of(id).value(), 0U);
      catalog.retire(id);
      if (refused) {
        most_refused = std::max(most_refused, writer->size());
        continue;
      }
      ASSERT_TRUE(writer->write());
      writer->committed();
      most = std::max(most, writer->size());
    }
  };
  ASSERT_TRUE(database->exec("BEGIN"));
  churn(1, 20'000, false);
  EXPECT_EQ(database->integer("SELECT count(*) FROM series").value(), 19'999);
  EXPECT_EQ(database->integer("SELECT count(*) FROM process").value(), 19'999);
  EXPECT_LE(most, 200U);
  churn(20'000, 40'000, true);  // a disk that refuses writes for long
  EXPECT_LE(most_refused, 5000U);
  ASSERT_TRUE(writer->write());
  EXPECT_GE(database->integer("SELECT count(*) FROM series").value(), 19'999 + 4096);
}

}  // namespace
}  // namespace vramtrack
