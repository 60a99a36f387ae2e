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

/// Reads beside a writer. Not thread-safe. What it has read it keeps (the last few charts), so that drawing the same
/// chart again costs no reading; samples written meanwhile are read once they matter to the chart.
class StoreHistory {
 public:
  /// Errors are those of StoreReader::open.
  static Result<StoreHistory> open(const std::string& path);

  /// At most `most` points within [from, to). Whole samples where the range is short enough to need them, else
  /// the rollups of minutes or hours. What cannot be read is left out, and said by take_error().
  std::vector<Point> points(const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most);

  /// When the series' first sample was; nullopt for one the store does not know.
  [[nodiscard]] std::optional<Timestamp> begin(const SeriesKey& key) const;
  /// First and last sample of all, as of the opening.
  [[nodiscard]] std::optional<std::pair<Timestamp, Timestamp>> extent() const;
  /// The alerts it holds; their series are described in `catalog`.
  Result<std::vector<Alert>> alerts(Catalog& catalog) { return reader_->alerts(catalog); }
  /// The last error of reading, once.
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
  std::list<Kept> kept_;  ///< the latest used first
  std::string error_;
};

}  // namespace vramtrack::top
