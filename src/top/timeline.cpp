#include "top/timeline.hpp"

#include <algorithm>

namespace vramtrack::top {
namespace {

void merge(Point& into, const Point& more) {
  const auto a = static_cast<double>(into.samples);
  const auto b = static_cast<double>(more.samples);
  into.mean_bytes = (into.mean_bytes * a + more.mean_bytes * b) / std::max(1.0, a + b);
  into.min_bytes = std::min(into.min_bytes, more.min_bytes);
  into.max_bytes = std::max(into.max_bytes, more.max_bytes);
  into.samples += more.samples;
  into.to = std::max(into.to, more.to);
}

}  // namespace

std::vector<Point> resample(const std::vector<Point>& points, Timestamp from, Timestamp to, std::size_t most) {
  std::vector<Point> out;
  if (most == 0 || to <= from) return out;
  const double step_s = seconds_between(from, to) / static_cast<double>(most);
  std::size_t slot = most;
  auto it = std::lower_bound(points.begin(), points.end(), from,
                             [](const Point& p, Timestamp time) { return p.from < time; });
  for (; it != points.end() && it->from < to; ++it) {
    const auto at = std::min(most - 1, static_cast<std::size_t>(seconds_between(from, it->from) / step_s));
    if (at == slot) {
      merge(out.back(), *it);
    } else {
      out.push_back(*it);
      slot = at;
    }
  }
  return out;
}

void SeriesTimeline::add(Timestamp time, double bytes) {
  if (!points_.empty() && time < points_.back().from) return;
  const Point point{time, time, bytes, bytes, bytes, 1};
  if (!points_.empty() && points_.back().samples < per_point_)
    merge(points_.back(), point);
  else
    points_.push_back(point);
  if (points_.size() <= most_) return;
  per_point_ *= 2;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); i += 2) {
    Point merged = points_[i];
    if (i + 1 < points_.size()) merge(merged, points_[i + 1]);
    points_[kept++] = merged;
  }
  points_.resize(kept);
}

void Timeline::take(const Batch& batch, const Catalog& catalog) {
  for (const Sample& sample : batch.samples) {
    auto it = series_.find(index_of(sample.series));
    if (it == series_.end())
      it = series_.emplace(index_of(sample.series), Entry{catalog.key(sample.series), SeriesTimeline(most_)}).first;
    it->second.line.add(sample.time, static_cast<double>(sample.bytes));
  }
}

void Timeline::forget_retired(const Catalog& catalog) {
  std::erase_if(series_, [&](const auto& entry) { return !catalog.holds(static_cast<SeriesId>(entry.first)); });
}

const std::vector<Point>* Timeline::points(const SeriesKey& key) const {
  // Use the latest series with that key, because the key of a retired series may reappear.
  const auto it =
      std::find_if(series_.rbegin(), series_.rend(), [&](const auto& entry) { return entry.second.key == key; });
  return it == series_.rend() ? nullptr : &it->second.line.points();
}

}  // namespace vramtrack::top
