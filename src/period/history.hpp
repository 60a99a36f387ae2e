// History: what a series did over a period, in at most kMostPoints buckets of one width, however long the period is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/sample.hpp"
#include "core/series.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// [start, start + width): a bucket without samples has no point.
struct HistoryPoint {
  Timestamp start;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  double mean = 0;
  std::uint64_t count = 0;
  std::optional<double> utilisation;  ///< the greatest of a device, 0..1, where it was told
};

/// Samples in, buckets out. The width begins at one second and doubles when a series has too many buckets; bounds
/// are multiples of it since the epoch, so that buckets of different series are the same stretches of time. Memory:
/// kMostPoints a series. Samples of one series come in time order.
class Histories {
 public:
  static constexpr std::size_t kMostPoints = 480;

  void add(const SeriesKey& key, Timestamp time, std::uint64_t bytes);
  /// A summary of `count` samples that lies within one stretch from `start`; nothing of it is later than what is
  /// added next.
  void add(const SeriesKey& key, const HistoryPoint& summary);
  void add_utilisation(const std::string& device_id, Timestamp time, double ratio);
  /// The greatest of a stretch: of all buckets that have a part of [from, to). Makes none.
  void add_utilisation(const std::string& device_id, Timestamp from, Timestamp to, double ratio);

  /// The points of `key`, all series' of one width. Empty when it has none.
  [[nodiscard]] const std::vector<HistoryPoint>& points(const SeriesKey& key);
  [[nodiscard]] std::vector<SeriesKey> keys() const;
  [[nodiscard]] double width_s() const { return seconds_between(Timestamp{}, Timestamp{width_}); }

 private:
  struct Less {
    bool operator()(const SeriesKey& a, const SeriesKey& b) const;
  };
  HistoryPoint& bucket(std::vector<HistoryPoint>& points, Timestamp time);
  [[nodiscard]] Timestamp floor(Timestamp time) const;
  void widen();
  void merge(std::vector<HistoryPoint>& points) const;

  Duration width_{std::chrono::seconds{1}};
  std::map<SeriesKey, std::vector<HistoryPoint>, Less> all_;
};

}  // namespace vramtrack
