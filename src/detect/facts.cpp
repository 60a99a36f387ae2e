#include "detect/facts.hpp"

#include <algorithm>

#include "core/units.hpp"

namespace vramtrack {
namespace {

/// A program that works for no more than this share of the time is not working yet: it checks and converts weights.
constexpr double kIdle = 0.05;
/// From this share on, it works.
constexpr double kWorks = 0.10;
/// Bytes read match a rise within this factor: weights may be converted, or kept in host memory as well.
constexpr double kMatches = 2;
/// Growth that matches the bytes read while the program works is a load for at most this long: data sets are read,
/// too.
constexpr double kLoadAtWork_s = 30 * kSecondsPerMinute;
/// A load of which nothing is known except that the program does not work yet.
constexpr double kLoadUnread_s = kSecondsPerHour;
/// It continues if its last fifth brought at least this share of the usual amount.
constexpr double kRecent = 0.2;
constexpr double kGoesOnShare = 0.25;
/// More than this share of the time must have been seen.
constexpr double kSeen = 0.8;

}  // namespace

void Track::observe(Timestamp time, double total) {
  if (!points_.empty() && (time < points_.back().time || total < points_.back().total)) points_.clear();
  // The last point moves with each reading until it is far enough from the one before.
  const std::size_t n = points_.size();
  if (n >= 2 && seconds_between(points_[n - 2].time, points_[n - 1].time) < kApart_s)
    points_.back() = {time, total};
  else
    points_.push_back({time, total});
  if (points_.size() <= kMost) return;
  // Older points are kept more coarsely: every second point of the older half is dropped.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); ++i)
    if (i % 2 == 0 || i >= kMost / 2) points_[kept++] = points_[i];
  points_.resize(kept);
}

double Track::at(Timestamp time) const {
  const auto after =
      std::lower_bound(points_.begin(), points_.end(), time, [](const Point& p, Timestamp t) { return p.time < t; });
  if (after == points_.end()) return points_.back().total;
  if (after == points_.begin() || after->time == time) return after->total;
  const Point& before = *std::prev(after);
  const double share = seconds_between(before.time, time) / seconds_between(before.time, after->time);
  return before.total + share * (after->total - before.total);
}

std::optional<double> Track::increase(Timestamp from, Timestamp to) const {
  if (points_.size() < 2 || to <= from) return std::nullopt;
  const Timestamp first = std::max(from, points_.front().time);
  const Timestamp last = std::min(to, points_.back().time);
  if (last <= first || seconds_between(first, last) < kSeen * seconds_between(from, to)) return std::nullopt;
  return at(last) - at(first);
}

std::optional<Timestamp> Track::first_at_rate(double per_s, Timestamp from) const {
  const auto rate = [&](std::size_t i) {
    return (points_[i].total - points_[i - 1].total) / seconds_between(points_[i - 1].time, points_[i].time);
  };
  const auto begin =
      std::lower_bound(points_.begin(), points_.end(), from, [](const Point& p, Timestamp t) { return p.time < t; });
  for (auto i = static_cast<std::size_t>(begin - points_.begin()) + 1; i + 1 < points_.size(); ++i)
    if (rate(i) >= per_s && rate(i + 1) >= per_s) return points_[i - 1].time;
  return std::nullopt;
}

void Facts::busy(Timestamp time, double ratio) {
  if (busy_.empty()) return busy_.observe(time, 0);
  const double passed_s = std::max(0.0, seconds_between(busy_.last(), time));
  busy_.observe(time, busy_.total() + std::clamp(ratio, 0.0, 1.0) * passed_s);
}

void Facts::read(Timestamp time, double total_bytes) {
  if (read_.empty() && begin_ && *begin_ < time) read_.observe(*begin_, 0);
  read_.observe(time, total_bytes);
}

void Facts::received(Timestamp time, double bytes_per_s) {
  if (received_.empty()) return received_.observe(time, 0);
  const double passed_s = std::max(0.0, seconds_between(received_.last(), time));
  received_.observe(time, received_.total() + std::max(0.0, bytes_per_s) * passed_s);
}

/// What `track` brought in that time, if it matches the rise.
std::optional<double> Facts::brought(const Track& track, Timestamp from, Timestamp to, double net_bytes) const {
  const auto bytes = track.increase(from, to);
  if (!bytes || *bytes * kMatches < net_bytes || *bytes > kMatches * net_bytes) return std::nullopt;
  return bytes;
}

std::optional<Load> Facts::load(Timestamp life, Timestamp start, Timestamp end, double net_bytes, bool full) const {
  const double duration_s = seconds_between(start, end);
  if (duration_s <= 0 || net_bytes <= 0) return std::nullopt;
  for (const Track* track : {&read_, &received_}) {
    const auto matched = brought(*track, start, end, net_bytes * (track == &read_ ? devices_ : 1));
    if (!matched || (duration_s > kLoadAtWork_s && worked(start, end))) continue;
    const Timestamp recent = end - from_seconds(kRecent * duration_s);
    const double lately = track->increase(recent, end).value_or(0);
    return Load{track == &read_ ? matched : std::nullopt, false, lately >= kGoesOnShare * kRecent * *matched};
  }
  if (busy_.empty()) return std::nullopt;
  // Until the program first works, and for a rise that took place mostly before.
  const auto work = busy_.first_at_rate(kWorks, life);
  const Timestamp until = work ? std::min(*work, end) : end;
  const double loading_s = seconds_between(start, until);
  const auto busy_s = busy_.increase(start, until);
  const auto before_s = busy_.increase(life, start);
  const bool may_have_worked = !before_s && seconds_between(life, start) > kLoadUnread_s;
  const bool idle = busy_s && *busy_s <= kIdle * loading_s && !may_have_worked &&
                    (!before_s || *before_s <= kIdle * seconds_between(life, start) + kIdle * duration_s);
  if (!idle || full || 2 * loading_s < duration_s || duration_s > kLoadUnread_s) return std::nullopt;
  return Load{std::nullopt, true, until == end};
}

bool Facts::worked(Timestamp from, Timestamp to) const {
  const auto busy_s = busy_.increase(from, to);
  return busy_s && *busy_s >= kWorks * seconds_between(from, to);
}

std::optional<double> Facts::read_since(Timestamp from) const {
  if (read_.empty()) return std::nullopt;
  return read_.increase(from, read_.last());
}

}  // namespace vramtrack
