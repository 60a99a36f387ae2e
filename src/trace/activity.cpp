#include "trace/activity.hpp"

#include <algorithm>
#include <map>

namespace vramtrack::trace {

void Activity::begin_with(Holder holder, std::int64_t bytes) {
  begin_.emplace_back(holder, bytes);
  live_bytes_ += bytes;
}

/// Drops the deltas that add up to zero; within a step, most do.
void Activity::sum_up(Deltas& deltas) {
  std::sort(deltas.begin(), deltas.end());
  std::size_t end = 0;
  for (const auto& [holder, bytes] : deltas)
    if (end > 0 && deltas[end - 1].first == holder)
      deltas[end - 1].second += bytes;
    else
      deltas[end++] = {holder, bytes};
  deltas.resize(end);
  std::erase_if(deltas, [](const auto& its) { return its.second == 0; });
  deltas.shrink_to_fit();
}

void Activity::close(Part& part) {
  sum_up(part.all);
  sum_up(part.since_peak);
}

void Activity::join(Part& first, const Part& second) {
  const auto add = [](Deltas& sum, const Deltas& more) { sum.insert(sum.end(), more.begin(), more.end()); };
  const std::int64_t least = std::min(first.peak.least_bytes, second.peak.least_bytes);
  if (second.peak.live_bytes > first.peak.live_bytes) {
    first.peak = second.peak;
    first.since_peak = second.since_peak;
  } else {
    add(first.since_peak, second.all);
  }
  first.peak.least_bytes = least;
  add(first.all, second.all);
}

Activity Activity::joined(unsigned times) const {
  Activity out(most_parts_);
  out.events_in_part_ = events_in_part_ << times;
  out.events_ = events_;
  out.live_bytes_ = live_bytes_;
  out.begin_ = begin_;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i % (std::size_t{1} << times) != 0) {
      join(out.parts_.back(), parts_[i]);
      continue;
    }
    if (i > 0) close(out.parts_.back());
    out.parts_.push_back(parts_[i]);
  }
  if (!out.parts_.empty()) close(out.parts_.back());
  return out;
}

void Activity::take(std::int64_t time_us, Holder holder, std::int64_t bytes, std::int64_t reserved_bytes) {
  const bool begins = parts_.empty() || open_events_ == events_in_part_;
  if (begins) {
    if (!parts_.empty()) close(parts_.back());
    if (parts_.size() == most_parts_) *this = joined(1);
    parts_.emplace_back();
    open_events_ = 0;
  }
  Part& part = parts_.back();
  live_bytes_ += bytes;
  part.all.emplace_back(holder, bytes);
  const std::int64_t least = begins ? live_bytes_ : std::min(part.peak.least_bytes, live_bytes_);
  if (begins || live_bytes_ > part.peak.live_bytes) {
    part.peak = {events_, time_us, live_bytes_, least, reserved_bytes};
    part.since_peak.clear();
  } else {
    part.since_peak.emplace_back(holder, bytes);
    part.peak.least_bytes = least;
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

void Activity::changes(const std::function<void(const Change&)>& see) const {
  if (parts_.empty()) return;
  for (const auto& [holder, bytes] : begin_) see({holder, 0, bytes});
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    Part open;
    if (i + 1 == parts_.size()) close(open = parts_[i]);
    const Part& part = i + 1 == parts_.size() ? open : parts_[i];
    // At the highest moment, a holder has the change over the part minus the change after that moment.
    for (const auto& [holder, bytes] : part.all) see({holder, i, bytes});
    for (const auto& [holder, bytes] : part.since_peak) {
      see({holder, i, -bytes});
      if (i + 1 < parts_.size()) see({holder, i + 1, bytes});
    }
  }
}

std::vector<std::pair<Holder, std::int64_t>> Activity::peaks() const {
  struct Its {
    std::uint32_t point = 0;
    std::int64_t bytes = 0, peak_bytes = 0;
    bool is_ever = false;
  };
  std::map<Holder, Its> by_holder;
  const auto end_point = [](Its& its) {
    its.peak_bytes = std::max(its.peak_bytes, its.bytes);
    its.is_ever = its.is_ever || its.bytes != 0;
  };
  changes([&](const Change& change) {
    Its& its = by_holder[change.holder];
    if (its.point != change.point) end_point(its);
    its.point = change.point;
    its.bytes += change.bytes;
  });
  std::vector<std::pair<Holder, std::int64_t>> out;
  for (auto& [holder, its] : by_holder) {
    end_point(its);
    if (its.is_ever) out.emplace_back(holder, its.peak_bytes);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace vramtrack::trace
