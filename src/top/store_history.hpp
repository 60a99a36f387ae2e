// StoreHistory: memory over time from a store's file, for charts.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "store/store.hpp"
#include "top/timeline.hpp"

namespace vramtrack::top {

/// Reads concurrently with a writer. Not thread-safe. It caches what it has read (for the last few charts), so that
/// drawing the same chart again costs no reading; samples written meanwhile are read once they affect the chart.
class StoreHistory {
 public:
  /// Errors are those of StoreReader::open.
  static Result<StoreHistory> open(const std::string& path);

  /// At most `most` points within [from, to). Individual samples if the range is short enough to need them, else the
  /// rollups of minutes or hours. Unreadable parts are left out, and reported by take_error().
  std::vector<Point> points(const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most);

  /// The time of the series' first sample; nullopt if the store does not have it.
  [[nodiscard]] std::optional<Timestamp> begin(const SeriesKey& key) const;
  /// The times of the first and last sample in the store when it was opened.
  [[nodiscard]] std::optional<std::pair<Timestamp, Timestamp>> extent() const;
  /// The alerts in the store; their series are described in `catalog`.
  Result<std::vector<Alert>> alerts(Catalog& catalog) { return reader_->alerts(catalog); }
  /// The last reading error, returned once.
  [[nodiscard]] std::string take_error() { return std::exchange(error_, {}); }

 private:
  enum class Grain : std::uint8_t { sample, minute, hour };
  struct Kept {
    SeriesKey key;
    Grain grain = Grain::minute;
    Timestamp from;
    Timestamp to;
    std::vector<Point> points;
  };

  explicit StoreHistory(std::unique_ptr<StoreReader> reader) : reader_(std::move(reader)) {}
  std::vector<Point> read(const SeriesKey& key, Grain grain, Timestamp from, Timestamp to);

  std::unique_ptr<StoreReader> reader_;
  std::vector<SeriesExtent> series_;
  std::list<Kept> kept_;  ///< most recently used first
  std::string error_;
};

}  // namespace vramtrack::top
