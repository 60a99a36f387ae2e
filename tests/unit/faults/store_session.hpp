// A scripted life of a store, for the tests that let its calls fail one after another: created, filled, packed,
// expired, closed, reopened, read. It records what was reported as committed, and checks it afterwards.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <set>
#include <string>
#include <vector>

#include "../store/store_fixture.hpp"
#include "fault_plan.hpp"

namespace vramtrack::testing {

/// SQLite's own check of a store's file.
inline void check_integrity(const std::string& path) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::string said;
  sqlite3_exec(
      database, "PRAGMA integrity_check",
      [](void* into, int, char** columns, char**) {
        *static_cast<std::string*>(into) += columns[0];
        return 0;
      },
      &said, nullptr);
  EXPECT_EQ(said, "ok") << sqlite3_errmsg(database);
  sqlite3_close(database);
}

class StoreSession {
 public:
  static constexpr int kSeries = 2;
  static constexpr std::int64_t kTicksPerFlush = 10;
  static constexpr std::int64_t kSecondsPerTick = 30;

  static constexpr std::int64_t kRetention_s = 1800;

  /// `expires`: raw samples expire after kRetention_s, so that chunks are deleted within a session of 12 flushes or
  /// more. Only the store's own calls count for `plan`.
  StoreSession(std::string path, bool expires, FaultPlan& plan)
      : path_(std::move(path)), expires_(expires), plan_(plan) {
    plan_.let(false);
  }
  ~StoreSession() { plan_.let(true); }
  StoreSession(const StoreSession&) = delete;
  StoreSession& operator=(const StoreSession&) = delete;

  static std::uint64_t value(std::int64_t tick, int series) {
    return static_cast<std::uint64_t>(tick * 7919 + series) << 20U;
  }
  static Timestamp time(std::int64_t tick) { return at_s(tick * kSecondsPerTick); }

  /// Runs all of it, whatever fails on the way. Every error has a message. `flushes`: of the first watch, five minutes
  /// each.
  void run(int flushes = 12) {
    record(flushes);
    record(flushes / 3);
    read();
  }

  /// Opens the store, appends this many flushes, closes it.
  void record(int flushes) {
    Catalog catalog;
    std::vector<SeriesId> ids;
    for (int s = 0; s < kSeries; ++s) ids.push_back(catalog.intern(device_key(s)));
    ProcessInfo process;
    process.pid = 42;
    process.start_ticks = 1042;
    process.command = "python train.py --with a --command line that is long";
    const SeriesId of_process = catalog.intern(process_key(0, 42));
    catalog.describe(process);
    DeviceInfo device;
    device.id = "GPU-0";
    device.name = "NVIDIA H100 80GB HBM3";
    catalog.describe(device);
    StoreConfig config;
    config.path = path_;
    config.raw_hours = raw_hours();
    config.max_size_mb = 0;
    config.flush_seconds = 1e9;
    const auto open = [&] { return under(plan_, [&] { return Store::open(config, catalog, at_s(0)); }); };
    auto opened = open();
    if (!opened) {
      check_words(opened.error().message);
      opened = open();  // a call that failed once may not fail again
    }
    if (!opened) return check_words(opened.error().message);
    Store& store = **opened;
    std::set<std::int64_t> given;  // given to this store, not known to be committed
    for (int i = 0; i < flushes; ++i) {
      Batch batch;
      for (int t = 0; t < kTicksPerFlush; ++t, ++next_) {
        for (int s = 0; s < kSeries; ++s)
          batch.samples.push_back({time(next_), ids[static_cast<std::size_t>(s)], value(next_, s)});
        batch.samples.push_back({time(next_), of_process, value(next_, kSeries)});
        appended_.insert(next_);
      }
      batch.events.push_back(Event{.time = time(next_ - 1), .text = "event " + std::to_string(next_)});
      DeviceReading reading;
      reading.time = time(next_ - 1);
      reading.device_id = "GPU-0";
      reading.gpu_utilisation_ratio = 0.5;
      batch.readings.push_back(reading);
      const ClockMark mark = mark_s(next_ * kSecondsPerTick);
      under(plan_, [&] { store.keep_time(mark); });
      const Status taken = under(plan_, [&] { return store.append(batch); });
      if (!taken) check_words(taken.error().message);
      if (taken)
        for (int t = 0; t < kTicksPerFlush; ++t) given.insert(next_ - 1 - t);
      const Status flushed = under(plan_, [&] { return store.flush(); });
      if (!flushed) check_words(flushed.error().message);
      if (flushed) {
        committed_.insert(given.begin(), given.end());
        given.clear();
      }
      if (i % 5 == 4) {
        Alert alert;
        alert.series = ids[0];
        alert.raised = time(next_);
        alert.finding.because = "alert " + std::to_string(next_);
        const Status recorded = under(plan_, [&] { return store.record(alert); });
        if (!recorded) check_words(recorded.error().message);
        // A lasting error is reported once: only a flush confirms that everything is in the file.
        const Status safe = under(plan_, [&] { return store.flush(); });
        if (recorded && safe) alerts_.insert(alert.finding.because);
      }
      for (const std::string& notice : store.take_notices()) check_words(notice);
    }
    under(plan_, [&] { opened->reset(); });
  }

  /// Reads the store as it is now. If no failure is reported, everything committed is there.
  void read() {
    const Found found = look();
    for (const std::string& error : found.errors) check_words(error);
    if (found.errors.empty()) compare(found);
  }

  /// Without failures: the store opens, is intact, and contains everything that was reported.
  void verify() {
    check_integrity(path_);
    if (::testing::Test::HasFailure()) return;
    if (committed_.empty() && !std::filesystem::exists(path_)) return;
    {
      Catalog catalog;
      StoreConfig config;
      config.path = path_;
      config.raw_hours = raw_hours();
      config.max_size_mb = 0;
      const auto store = Store::open(config, catalog, at_s(0));
      ASSERT_TRUE(store) << store.error().message;
    }
    const Found found = look();
    ASSERT_TRUE(found.errors.empty()) << found.errors.front();
    compare(found);
  }

  [[nodiscard]] std::size_t committed() const { return committed_.size(); }
  /// Committed ticks without samples in the last verify() or read(): they were older than the retention.
  [[nodiscard]] std::size_t expired() const { return expired_; }
  /// Reported errors, by their beginning.
  [[nodiscard]] std::size_t errors() const { return errors_; }

 private:
  [[nodiscard]] double raw_hours() const { return expires_ ? static_cast<double>(kRetention_s) / 3600 : 1e6; }
  /// Judged by the last mark that the store received, which is from the moment after the last tick.
  [[nodiscard]] bool may_be_gone(std::int64_t tick) const {
    return expires_ && (next_ - tick) * kSecondsPerTick >= kRetention_s;
  }

  struct Found {
    Catalog catalog;
    std::map<std::string, std::vector<std::pair<std::int64_t, std::uint64_t>>> samples;  ///< keyed by device and pid
    std::size_t events = 0;
    std::vector<std::vector<Rollup>> hours;
    std::vector<Alert> alerts;
    std::vector<std::string> errors;
  };

  void check_words(const std::string& message) {
    ++errors_;
    EXPECT_FALSE(message.empty());
    EXPECT_EQ(message.find("please report this"), std::string::npos) << message;
    EXPECT_EQ(message.find("within a transaction"), std::string::npos) << message;
  }

  [[nodiscard]] Found look() const {
    Found found;
    const auto keep = [&](const auto& result) {
      if (!result) found.errors.push_back(result.error().message);
      return result.has_value();
    };
    auto reader = under(plan_, [&] { return StoreReader::open(path_); });
    if (!keep(reader)) return found;
    for (int s = 0; s < kSeries + 1; ++s) {
      const SeriesKey key = s < kSeries ? device_key(s) : process_key(0, 42);
      auto hours = under(plan_, [&] { return (*reader)->rollups(key, Resolution::hour); });
      if (keep(hours)) found.hours.push_back(std::move(*hours));
    }
    Catalog catalog;
    auto alerts = under(plan_, [&] { return (*reader)->alerts(catalog); });
    if (keep(alerts)) found.alerts = std::move(*alerts);
    const auto series = under(plan_, [&] { return (*reader)->series(); });
    if (keep(series)) {
      for (const SeriesExtent& extent : *series)
        EXPECT_TRUE(extent.key.device_id == "GPU-0" || extent.key.device_id == "GPU-1") << extent.key.device_id;
    }
    static_cast<void>(keep(under(plan_, [&] { return (*reader)->raw_extent(); })));
    const std::string device = "GPU-0";
    static_cast<void>(keep(under(plan_, [&] { return (*reader)->device_minutes(device); })));
    Batch batch;
    for (int failures = 0; failures < 100;) {
      const auto more = under(plan_, [&] { return (*reader)->read(found.catalog, batch); });
      failures += !keep(more);
      if (more && !*more) break;
      for (const Sample& sample : batch.samples)
        found
            .samples[found.catalog.key(sample.series).device_id + '/' +
                     std::to_string(found.catalog.key(sample.series).pid)]
            .emplace_back(sample.time.time_since_epoch().count(), sample.bytes);
      found.events += batch.events.size();
    }
    return found;
  }

  void compare(const Found& found) {
    expired_ = 0;
    for (int s = 0; s < kSeries + 1; ++s) {
      const SeriesKey key = s < kSeries ? device_key(s) : process_key(0, 42);
      std::set<std::int64_t> there;
      const auto samples = found.samples.find(key.device_id + '/' + std::to_string(key.pid));
      for (const auto& [time_ns, bytes] :
           samples == found.samples.end() ? decltype(samples->second)() : samples->second) {
        const std::int64_t tick = (time_ns - kStart) / kSecond / kSecondsPerTick;
        EXPECT_TRUE(there.insert(tick).second) << "tick " << tick << " is there twice";
        EXPECT_TRUE(appended_.contains(tick)) << "tick " << tick << " was never given";
        EXPECT_EQ(bytes, value(tick, s));
      }
      std::size_t gone = 0;
      for (const std::int64_t tick : committed_) {
        if (there.contains(tick)) continue;
        ++gone;
        EXPECT_TRUE(may_be_gone(tick)) << "tick " << tick << " of " << next_ << " is gone";
      }
      expired_ = std::max(expired_, gone);
      std::uint64_t counted = 0;
      for (const Rollup& hour : found.hours[static_cast<std::size_t>(s)]) counted += hour.count;
      EXPECT_GE(counted, committed_.size()) << "in the hours of series " << s;
      EXPECT_LE(counted, appended_.size()) << "in the hours of series " << s;
      if (!expires_) {
        EXPECT_EQ(counted, there.size()) << "in the hours of series " << s;
      }
    }
    std::set<std::string> there;
    for (const Alert& alert : found.alerts) there.insert(alert.finding.because);
    for (const std::string& alert : alerts_) EXPECT_TRUE(there.contains(alert)) << alert << " is gone";
  }

  std::string path_;
  bool expires_;
  FaultPlan& plan_;
  std::int64_t next_ = 0;
  std::set<std::int64_t> appended_;
  std::set<std::int64_t> committed_;
  std::set<std::string> alerts_;
  std::size_t errors_ = 0;
  std::size_t expired_ = 0;
};

}  // namespace vramtrack::testing
