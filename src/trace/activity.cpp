#include "trace/activity.hpp"

#include <algorithm>
#include <map>

namespace vramtrack::trace {

void Activity::begin_with(Holder holder, std::int64_t bytes) {
  begin_[holder] += bytes;
  live_bytes_ += bytes;
}

void Activity::join(Part& first, Part& second) {
  if (second.peak.live_bytes > first.peak.live_bytes) {
    const std::int64_t least = std::min(first.peak.least_bytes, second.peak.least_bytes);
    first.peak = second.peak;
    first.peak.least_bytes = least;
    first.since_peak = std::move(second.since_peak);
  } else {
    first.peak.least_bytes = std::min(first.peak.least_bytes, second.peak.least_bytes);
    for (const auto& [holder, bytes] : second.all) first.since_peak[holder] += bytes;
  }
  for (const auto& [holder, bytes] : second.all) first.all[holder] += bytes;
}

void Activity::take(std::int64_t time_us, Holder holder, std::int64_t bytes, std::int64_t reserved_bytes) {
  if (parts_.empty() || open_events_ == events_in_part_) {
    if (parts_.size() == most_parts_) {
      for (std::size_t i = 0; i < parts_.size(); i += 2) {
        join(parts_[i], parts_[i + 1]);
        if (i > 0) parts_[i / 2] = std::move(parts_[i]);
      }
      parts_.resize(parts_.size() / 2);
      events_in_part_ *= 2;
    }
    parts_.emplace_back();
    parts_.back().peak = {events_, time_us, live_bytes_ + bytes, live_bytes_ + bytes, reserved_bytes};
    open_events_ = 0;
    live_bytes_ += bytes;
    parts_.back().all[holder] += bytes;
  } else {
    Part& part = parts_.back();
    live_bytes_ += bytes;
    part.all[holder] += bytes;
    if (live_bytes_ > part.peak.live_bytes) {
      part.peak = {events_, time_us, live_bytes_, part.peak.least_bytes, reserved_bytes};
      part.since_peak.clear();
    } else {
      part.since_peak[holder] += bytes;
      part.peak.least_bytes = std::min(part.peak.least_bytes, live_bytes_);
    }
  }
  ++open_events_;
  ++events_;
}

std::vector<Activity::Point> Activity::points() const {
  std::vector<Point> points;
  points.reserve(parts_.size());
  for (const Part& part : parts_) points.push_back(part.peak);
  return points;
}

std::vector<Activity::Curve> Activity::curves() const {
  struct Open {
    std::int64_t at_begin = 0;  ///< of the part
    Curve curve;
  };
  std::map<Holder, Open> open;
  for (const auto& [holder, bytes] : begin_) open[holder].at_begin = bytes;
  const auto set = [](Curve& curve, std::uint32_t point, std::int64_t bytes) {
    curve.peak_bytes = std::max(curve.peak_bytes, bytes);
    if (!curve.steps.empty() && curve.steps.back().point == point)
      curve.steps.back().bytes = bytes;
    else if (curve.steps.empty() ? bytes != 0 : curve.steps.back().bytes != bytes)
      curve.steps.push_back({point, bytes});
  };
  if (!parts_.empty())
    for (auto& [holder, its] : open) set(its.curve, 0, its.at_begin);
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    // Who did not change in a part has at its highest moment what it had at its begin: set below, a part before.
    for (const auto& [holder, bytes] : parts_[i].all) {
      Open& its = open[holder];
      const auto since = parts_[i].since_peak.find(holder);
      const std::int64_t at_end = its.at_begin + bytes;
      set(its.curve, i, at_end - (since == parts_[i].since_peak.end() ? 0 : since->second));
      if (i + 1 < parts_.size()) set(its.curve, i + 1, at_end);
      its.at_begin = at_end;
    }
  }
  std::vector<Curve> curves;
  for (auto& [holder, its] : open) {
    if (its.curve.steps.empty()) continue;
    its.curve.holder = holder;
    curves.push_back(std::move(its.curve));
  }
  std::stable_sort(curves.begin(), curves.end(),
                   [](const Curve& a, const Curve& b) { return a.peak_bytes > b.peak_bytes; });
  return curves;
}

}  // namespace vramtrack::trace
