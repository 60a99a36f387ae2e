// Timeline: the samples that this program has seen, in bounded memory, for drawing.
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

namespace vramtrack::top {

/// Memory over [from, to), from the samples in it. A gap between neighbouring points means that there were no samples.
struct Point {
  Timestamp from;
  Timestamp to;
  double min_bytes = 0;
  double mean_bytes = 0;
  double max_bytes = 0;
  std::uint64_t samples = 0;
};

/// `points`, in time order, merged into at most `most` points of equal duration within [from, to). Points outside are
/// left out. O(points).
std::vector<Point> resample(const std::vector<Point>& points, Timestamp from, Timestamp to, std::size_t most);

/// One series. Every sample is a point until there are `most`; then neighbours are merged in pairs, repeatedly, so the
/// whole past has a resolution of at least most / 2 points.
class SeriesTimeline {
 public:
  explicit SeriesTimeline(std::size_t most) : most_(most) {}
  /// Call in time order; an older sample is ignored. O(1) amortised.
  void add(Timestamp time, double bytes);
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }

 private:
  std::size_t most_;
  std::uint64_t per_point_ = 1;
  std::vector<Point> points_;
};

/// All series of a catalog. Not thread-safe.
class Timeline {
 public:
  /// Takes 64 bytes per point; the default is 128 KiB per series.
  explicit Timeline(std::size_t points_per_series = 2048) : most_(points_per_series) {}

  void take(const Batch& batch, const Catalog& catalog);
  /// Forgets series that the catalog has retired. O(series); call it occasionally.
  void forget_retired(const Catalog& catalog);
  [[nodiscard]] const std::vector<Point>* points(const SeriesKey& key) const;

 private:
  struct Entry {
    SeriesKey key;
    SeriesTimeline line;
  };
  std::size_t most_;
  std::map<std::uint32_t, Entry> series_;  ///< by SeriesId
};

}  // namespace vramtrack::top
