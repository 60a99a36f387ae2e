// What the store's tests share: a separate folder, and a scan that collects everything.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../temp_folder.hpp"
#include "store/store.hpp"

namespace vramtrack::testing {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'767'225'600 * kSecond;  // 2026-01-01T00:00:00Z

inline Timestamp at_ns(std::int64_t ns) {
  return Timestamp(Duration(ns));
}
inline Timestamp at_s(std::int64_t s) {
  return at_ns(kStart + s * kSecond);
}

inline SeriesKey device_key(int device) {
  return {Metric::device_used, "GPU-" + std::to_string(device), 0, 0};
}
inline SeriesKey process_key(int device, std::uint32_t pid) {
  return {Metric::process_used, "GPU-" + std::to_string(device), pid, 1000U + pid};
}

/// The machine's clocks `uptime_s` after at_s(0), if nobody has set them.
inline ClockMark mark_s(std::int64_t uptime_s) {
  const Duration boot(uptime_s * kSecond);
  return {.boot_id = "boot-1", .since_boot = boot, .wall = at_s(uptime_s), .stamp = at_s(uptime_s)};
}

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    config.path = folder.file("vramtrack.db");
    config.max_size_mb = 0;
  }
  std::unique_ptr<Store> open() {
    auto store = Store::open(config, catalog, at_s(0));
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }

  TempFolder folder;
  Catalog catalog;
  StoreConfig config;
};

/// Everything a scan yields, by series; batches kept too.
struct Scan {
  std::vector<std::pair<SeriesKey, std::vector<std::pair<std::int64_t, std::uint64_t>>>> series;
  std::vector<Event> events;
  std::vector<Batch> batches;
  std::vector<std::string> errors;
  Catalog catalog;
  std::size_t samples = 0;

  [[nodiscard]] const std::vector<std::pair<std::int64_t, std::uint64_t>>& of(const SeriesKey& key) const {
    static const std::vector<std::pair<std::int64_t, std::uint64_t>> none;
    for (const auto& [k, values] : series)
      if (k == key) return values;
    return none;
  }
};

inline Scan scan(const std::string& path, const TimeRange& range = {}, bool keep_batches = false) {
  Scan result;
  auto reader = StoreReader::open(path);
  if (!reader) {
    result.errors.push_back(reader.error().message);
    return result;
  }
  (*reader)->select(range);
  Batch batch;
  while (true) {
    const auto more = (*reader)->read(result.catalog, batch);
    if (!more) {
      result.errors.push_back(more.error().message);
      if (result.errors.size() > 1000) break;
      continue;
    }
    if (!*more) break;
    for (const Sample& sample : batch.samples) {
      const std::size_t index = index_of(sample.series);
      while (result.series.size() <= index)
        result.series.push_back({result.catalog.key(static_cast<SeriesId>(result.series.size())), {}});
      result.series[index].second.emplace_back(sample.time.time_since_epoch().count(), sample.bytes);
      ++result.samples;
    }
    result.events.insert(result.events.end(), batch.events.begin(), batch.events.end());
    if (keep_batches) result.batches.push_back(batch);
  }
  return result;
}

}  // namespace vramtrack::testing
