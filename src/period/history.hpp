// History: a series over a period, in at most kMostPoints buckets of equal width, regardless of its length.
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
  std::optional<double> utilisation;  ///< a device's highest, 0..1, if it was reported
};

/// Samples in, buckets out. The width begins at one second and doubles when a series has too many buckets; bounds
/// are multiples of it since the epoch, so that buckets of different series cover the same times. Memory:
/// kMostPoints per series. Samples of one series come in time order.
class Histories {
 public:
  static constexpr std::size_t kMostPoints = 480;

  void add(const SeriesKey& key, Timestamp time, std::uint64_t bytes);
  /// A summary of `count` samples that lie within one stretch from `start`; none of them is later than what is
  /// added next.
  void add(const SeriesKey& key, const HistoryPoint& summary);
  void add_utilisation(const std::string& device_id, Timestamp time, double ratio);
  /// The highest utilisation of an interval, for all buckets that overlap [from, to). Creates no buckets.
  void add_utilisation(const std::string& device_id, Timestamp from, Timestamp to, double ratio);

  /// The points of `key`, of the same width for all series. Empty when it has none.
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
