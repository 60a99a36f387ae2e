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
  std::optional<double> utilisation;  ///< the highest of a device, 0..1, if it was reported
};

/// Collects samples into buckets. Their width starts at one second and doubles when a series has too many buckets;
/// bounds are multiples of it since the epoch, so that the buckets of all series cover the same times. Memory:
/// kMostPoints per series. Samples of one series must be in time order.
class Histories {
 public:
  static constexpr std::size_t kMostPoints = 480;

  void add(const SeriesKey& key, Timestamp time, std::uint64_t bytes);
  /// Adds a summary of `count` samples within one interval from `start`; all of them must precede those added
  /// next.
  void add(const SeriesKey& key, const HistoryPoint& summary);
  void add_utilisation(const std::string& device_id, Timestamp time, double ratio);
  /// Adds the highest utilisation of an interval to all buckets that overlap [from, to). Creates no buckets.
  void add_utilisation(const std::string& device_id, Timestamp from, Timestamp to, double ratio);

  /// The points of `key`, with the same width for all series. Empty if it has none.
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
