#include "detect/floor_curve.hpp"

#include <algorithm>

namespace vramtrack {
namespace {

constexpr Duration kFinestWidth = std::chrono::seconds{10};
/// A rise is examined in at most this many slots.
constexpr double kSlotsOfRise = 32;

}  // namespace

FloorCurve::FloorCurve() {
  for (auto& level : floors_) level.fill(-1);
}

std::int64_t FloorCurve::slot_of(std::size_t level, Timestamp time) {
  const std::int64_t ns = time.time_since_epoch().count();
  const std::int64_t finest = ns / kFinestWidth.count() - (ns % kFinestWidth.count() < 0 ? 1 : 0);
  return finest >> level;
}

std::size_t FloorCurve::level_for(double duration_s) {
  std::size_t level = 0;
  while (level + 1 < kLevels && kSlotsOfRise * width_s(level) < duration_s) ++level;
  return level;
}

void FloorCurve::fold() {
  const std::int64_t finest = slot_of(0, last_);
  for (std::size_t level = 0; level < kLevels; ++level) {
    const std::int64_t slot = finest >> level;
    auto& floors = floors_[level];
    if (newest_[level] >= slot) {
      float& floor = floors[place_of(slot)];
      // The coarser slots that contain this one were already as low before.
      if (floor >= 0 && floor <= last_bytes_) return;
      floor = last_bytes_;
      continue;
    }
    for (std::int64_t s = std::max(newest_[level] + 1, slot - std::int64_t{kSlots} + 1); s < slot; ++s)
      floors[place_of(s)] = -1;
    newest_[level] = slot;
    floors[place_of(slot)] = last_bytes_;
  }
}

void FloorCurve::observe(Timestamp time, double bytes) {
  if (!any_) {
    for (std::size_t level = 0; level < kLevels; ++level)
      newest_[level] = slot_of(level, time) - std::int64_t{kSlots} - 1;
  } else if (time > last_) {
    fold();
  }
  any_ = true;
  last_ = time;
  last_bytes_ = static_cast<float>(bytes);
}

std::optional<double> FloorCurve::floor_in(std::size_t level, std::int64_t slot) const {
  if (!any_) return std::nullopt;
  constexpr std::int64_t kCount{kSlots};
  float floor = -1;
  if (slot <= newest_[level] && slot > newest_[level] - kCount) floor = floors_[level][place_of(slot)];
  if (slot == slot_of(level, last_)) floor = floor < 0 ? last_bytes_ : std::min(floor, last_bytes_);
  return floor < 0 ? std::nullopt : std::optional(static_cast<double>(floor));
}

std::optional<double> FloorCurve::floor_between(std::size_t level, Timestamp from, Timestamp to) const {
  std::optional<double> lowest;
  if (!any_) return lowest;
  const std::int64_t newest = slot_of(level, last_);
  const std::int64_t first = std::max(slot_of(level, from), newest - std::int64_t{kSlots} + 1);
  for (std::int64_t slot = first; slot <= std::min(slot_of(level, to), newest); ++slot)
    if (const auto floor = floor_in(level, slot)) lowest = lowest ? std::min(*lowest, *floor) : *floor;
  return lowest;
}

}  // namespace vramtrack
