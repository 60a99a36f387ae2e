#include "period/history.hpp"

#include <algorithm>
#include <tuple>

namespace vramtrack {
namespace {

void join(HistoryPoint& into, const HistoryPoint& other) {
  if (other.utilisation) into.utilisation = std::max(into.utilisation.value_or(0), *other.utilisation);
  if (other.count == 0) return;
  if (into.count == 0) {
    into.min = other.min;
    into.max = other.max;
    into.mean = other.mean;
  } else {
    const auto all = static_cast<double>(into.count + other.count);
    into.min = std::min(into.min, other.min);
    into.max = std::max(into.max, other.max);
    into.mean += (other.mean - into.mean) * static_cast<double>(other.count) / all;
  }
  into.count += other.count;
}

}  // namespace

bool Histories::Less::operator()(const SeriesKey& a, const SeriesKey& b) const {
  return std::tie(a.device_id, a.pid, a.pid_start_ticks, a.metric, a.host) <
         std::tie(b.device_id, b.pid, b.pid_start_ticks, b.metric, b.host);
}

Timestamp Histories::floor(Timestamp time) const {
  const std::int64_t ns = time.time_since_epoch().count();
  const std::int64_t width = width_.count();
  const std::int64_t rest = ((ns % width) + width) % width;
  return Timestamp{Duration{ns - rest}};
}

HistoryPoint& Histories::bucket(std::vector<HistoryPoint>& points, Timestamp time) {
  // Utilisation and summaries may come a little late, so search for their bucket from the end.
  for (;;) {
    const Timestamp start = floor(time);
    const auto at =
        std::find_if(points.rbegin(), points.rend(), [&](const HistoryPoint& p) { return p.start <= start; });
    if (at != points.rend() && at->start == start) return *at;
    if (points.size() >= kMostPoints) {
      widen();
      continue;
    }
    HistoryPoint point;
    point.start = start;
    return *points.insert(at.base(), point);
  }
}

void Histories::widen() {
  width_ *= 2;
  for (auto& [key, points] : all_) merge(points);
}

void Histories::merge(std::vector<HistoryPoint>& points) const {
  std::vector<HistoryPoint> merged;
  for (const HistoryPoint& p : points) {
    const Timestamp start = floor(p.start);
    if (merged.empty() || merged.back().start != start) {
      merged.push_back(p);
      merged.back().start = start;
    } else {
      join(merged.back(), p);
    }
  }
  points = std::move(merged);
}

void Histories::add(const SeriesKey& key, Timestamp time, std::uint64_t bytes) {
  HistoryPoint sample;
  sample.start = time;
  sample.min = sample.max = bytes;
  sample.mean = static_cast<double>(bytes);
  sample.count = 1;
  add(key, sample);
}

void Histories::add(const SeriesKey& key, const HistoryPoint& summary) {
  join(bucket(all_[key], summary.start), summary);
}

void Histories::add_utilisation(const std::string& device_id, Timestamp time, double ratio) {
  HistoryPoint reading;
  reading.utilisation = ratio;
  join(bucket(all_[{Metric::device_used, device_id, 0, 0}], time), reading);
}

void Histories::add_utilisation(const std::string& device_id, Timestamp from, Timestamp to, double ratio) {
  const auto device = all_.find({Metric::device_used, device_id, 0, 0});
  if (device == all_.end()) return;
  auto p = std::lower_bound(device->second.begin(), device->second.end(), floor(from),
                            [](const HistoryPoint& point, Timestamp start) { return point.start < start; });
  for (; p != device->second.end() && p->start < to; ++p) p->utilisation = std::max(p->utilisation.value_or(0), ratio);
}

const std::vector<HistoryPoint>& Histories::points(const SeriesKey& key) {
  static const std::vector<HistoryPoint> none;
  const auto it = all_.find(key);
  if (it == all_.end()) return none;
  // A bucket with a utilisation but no sample has no information about memory.
  std::erase_if(it->second, [](const HistoryPoint& p) { return p.count == 0; });
  return it->second;
}

std::vector<SeriesKey> Histories::keys() const {
  std::vector<SeriesKey> out;
  for (const auto& [key, points] : all_) out.push_back(key);
  return out;
}

}  // namespace vramtrack
