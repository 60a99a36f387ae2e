#include "detect/days.hpp"

#include <algorithm>

#include "detect/experience.hpp"

namespace vramtrack {
namespace {

constexpr std::int64_t kDay_h = 24;
constexpr std::int64_t kDaysBack = 7;
/// A rise that lasts longer is not a morning.
constexpr std::int64_t kLongest_h = 16;
/// A day is like today if it rose by this share of today's rise, if today's level is no higher than its highest plus
/// this share of its swing, and if it released all of its rise except this share before today's rise began.
constexpr float kAlike = 0.7F;
constexpr float kHigher = 0.3F;
constexpr float kLeft = 0.3F;

}  // namespace

std::int64_t Days::hour_of(Timestamp time) {
  return std::chrono::floor<std::chrono::hours>(time.time_since_epoch()).count();
}

float Days::floor_at(std::int64_t hour) const {
  if (hour < first_hour_ || hour >= first_hour_ + static_cast<std::int64_t>(floors_.size())) return kUnknown;
  return floors_[static_cast<std::size_t>(hour - first_hour_)];
}

/// Makes `hour` the hour after the last one kept.
void Days::reach(std::int64_t hour) {
  const std::int64_t next = first_hour_ + static_cast<std::int64_t>(floors_.size());
  if (floors_.empty() || hour - next > static_cast<std::int64_t>(kHours)) {
    floors_.clear();
    first_hour_ = hour;
  }
  while (first_hour_ + static_cast<std::int64_t>(floors_.size()) <= hour) floors_.push_back(kUnknown);
  while (floors_.size() > kHours) {
    floors_.pop_front();
    ++first_hour_;
  }
}

void Days::observe(Timestamp time, double bytes) {
  const std::int64_t hour = hour_of(time);
  const auto value = static_cast<float>(bytes);
  if (floors_.empty() || first_hour_ + static_cast<std::int64_t>(floors_.size()) <= hour) reach(hour);
  if (hour < first_hour_) return;
  float& floor = floors_[static_cast<std::size_t>(hour - first_hour_)];
  if (floor == kUnknown || value < floor) floor = value;
}

void Days::add_hour(Timestamp hour, double floor_bytes) {
  observe(hour, floor_bytes);
}

void Days::prepend(const Days& before) {
  Days whole = before;
  for (std::size_t i = 0; i < floors_.size(); ++i)
    if (floors_[i] != kUnknown)
      whole.observe(Timestamp(std::chrono::hours(first_hour_ + static_cast<std::int64_t>(i))),
                    static_cast<double>(floors_[i]));
  *this = std::move(whole);
}

Days::Seen Days::like(const Rise& rise) const {
  Seen seen;
  const std::int64_t from = hour_of(rise.start);
  const std::int64_t to = hour_of(rise.end);
  if (floors_.empty() || to - from > kLongest_h) return seen;
  const auto net = static_cast<float>(rise.net_bytes);
  const auto level = static_cast<float>(rise.start_bytes) + net;
  for (std::int64_t day = 1; day <= kDaysBack; ++day) {
    const std::int64_t begin = from - day * kDay_h;
    const float before = floor_at(begin);
    if (before == kUnknown) continue;
    // The floor of an hour is the level at which it began, so the end of the rise shows in the next hour's floor.
    float highest = before;
    for (std::int64_t h = begin; h <= to - day * kDay_h + 1; ++h) highest = std::max(highest, floor_at(h));
    float lowest = highest;
    for (std::int64_t h = to - day * kDay_h + 1; h < from; ++h)
      if (const float floor = floor_at(h); floor != kUnknown) lowest = std::min(lowest, floor);
    ++seen.known;
    const float rose = highest - before;
    const bool alike = rose >= kAlike * net && level <= highest + kHigher * (highest - std::min(before, lowest)) &&
                       lowest <= before + kLeft * rose;
    seen.alike += alike ? 1 : 0;
  }
  return seen;
}

}  // namespace vramtrack
