#include "detect/regimes.hpp"

#include <algorithm>
#include <cmath>

namespace vramtrack {
namespace {

/// A fall of the floor by this share of the highest level begins a new regime; a smaller movement does not show that
/// the last fall is over.
constexpr float kFallShare = 0.2F;
/// Near the lowest or the highest level: within this share of the distance between them.
constexpr float kNearShare = 0.1F;
/// A rise may be the next cycle until it has lasted for this many times the earlier climb, of which the middle four
/// fifths are measured. The cycles of one program differ by some 40 % (one sigma, log-normal); this allows for two
/// sigma. A load is hundreds of times faster than a leak.
constexpr double kCycleRatio = 3;
/// A rate of falls can be estimated from this many on.
constexpr int kLeastFalls = 3;
/// If falls come at random, once in T on average, a stretch of 3 T has none in exp(-3) = 5 of 100 cases.
constexpr double kOutlasts = 3;

}  // namespace

bool Regimes::push(std::int32_t slot, float floor_bytes) {
  if (!any_ || has_fallen_) {
    if (!any_) first_ = slot;
    any_ = true;
    has_fallen_ = false;
    begin(slot, floor_bytes);
    return true;
  }
  // Nothing noticeable has risen since the last fall: the fall continues.
  const bool goes_on = falls_ > 0 && floor_bytes < low_bytes_ && high_bytes_ - low_bytes_ < kFallShare * high_bytes_;
  const bool falls = floor_bytes < high_bytes_ * (1 - kFallShare);
  if (falls && !goes_on) {
    record();
    last_fall_ = slot;
  }
  if (falls || goes_on) {
    begin(slot, floor_bytes);
    return true;
  }
  if (floor_bytes < low_bytes_) {
    low_bytes_ = floor_bytes;
    low_until_ = slot;
  }
  if (floor_bytes > high_bytes_) {
    high_bytes_ = floor_bytes;
    if (high_bytes_ - near_high_bytes_ > kNearShare * (high_bytes_ - low_bytes_)) {
      near_high_bytes_ = floor_bytes;
      high_from_ = slot;
    }
  }
  if (floor_bytes - low_bytes_ <= kNearShare * (high_bytes_ - low_bytes_)) low_until_ = slot;
  return false;
}

void Regimes::fall() {
  if (!any_ || has_fallen_) return;
  record();
  last_fall_ = std::max(last_fall_, std::max(low_until_, high_from_));
  has_fallen_ = true;
}

void Regimes::begin(std::int32_t slot, float floor_bytes) {
  begins_ = low_until_ = high_from_ = slot;
  low_bytes_ = high_bytes_ = near_high_bytes_ = floor_bytes;
}

void Regimes::record() {
  ++falls_;
  const Ascent now{high_bytes_, std::max(0, high_from_ - low_until_)};
  if (size_ == kAscents) {
    // The last but one absorbs the last: it counts against everything that either of them counted against.
    const Ascent& last = ascents_[kAscents - 1];
    Ascent& kept = ascents_[kAscents - 2];
    kept = {std::max(kept.high_bytes, last.high_bytes), std::max(kept.climb_slots, last.climb_slots)};
    --size_;
  }
  std::copy_backward(ascents_.begin(), ascents_.begin() + static_cast<std::ptrdiff_t>(size_),
                     ascents_.begin() + static_cast<std::ptrdiff_t>(size_) + 1);
  ascents_[0] = now;
  ++size_;
}

double Regimes::chance_of_no_fall(std::int32_t until, double slots) const {
  const double seen = std::max(1, until - first_);
  return std::pow(1 + slots / seen, -(falls_ + 1));
}

double Regimes::held_against(double slots) const {
  const double between = static_cast<double>(last_fall_ - first_) / std::max(1, falls_);
  const bool often = falls_ >= kLeastFalls && slots < kOutlasts * between;
  double highest = 0;
  for (std::size_t i = 0; i < size_; ++i)
    if (often || slots <= kCycleRatio * static_cast<double>(ascents_[i].climb_slots))
      highest = std::max(highest, static_cast<double>(ascents_[i].high_bytes));
  return highest;
}

}  // namespace vramtrack
