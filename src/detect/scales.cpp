#include "detect/scales.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/median.hpp"
#include "detect/ring.hpp"

namespace vramtrack {
namespace {

/// A level forgets its largest size by a tenth per bucket: a rare jump must not silence the second bet forever.
constexpr float kForgetting = 0.9F;
/// The scales of the bets: z = 2x / scale. The first scale is this many medians of the recent sizes, ...
constexpr float kMedians = 5;
/// ... and the third makes z this for any size.
constexpr float kSign = 1.5F;
/// An increment that gains less than this (nats, up or down) hardly counts: evidence may as well begin after it.
constexpr float kHardlyWeighs = 0.1F;
constexpr float kLn2 = 0.6931472F;

/// log(exp(z) / cosh(z)), without overflow.
float log_symmetric_gain(float z) {
  return z >= 0 ? kLn2 - std::log1p(std::exp(-2 * z)) : kLn2 + 2 * z - std::log1p(std::exp(2 * z));
}

/// The middle value, for an even number the upper one; for five without a branch, since this runs for each bucket.
float middle_of(std::span<const float> v) {
  if (v.size() == 5) {
    const float low = std::max(std::min(v[0], v[1]), std::min(v[2], v[3]));
    const float high = std::min(std::max(v[0], v[1]), std::max(v[2], v[3]));
    return std::max(std::min(low, high), std::min(std::max(low, high), v[4]));  // the middle of these two and the last
  }
  std::array<float, 5> sorted{};
  std::copy(v.begin(), v.end(), sorted.begin());
  return upper_median(std::span(sorted).first(v.size()));
}

}  // namespace

std::array<float, DriftEvidence::kBets> DriftEvidence::observe(float increment_bytes) {
  std::array<float, kBets> gains{};
  largest_abs *= kForgetting;
  if (increment_bytes == 0) return gains;
  const float size = std::abs(increment_bytes);
  largest_abs = std::max(largest_abs, size);
  recent_abs[recent_next] = size;
  recent_next = static_cast<std::uint8_t>((recent_next + 1U) % recent_abs.size());
  recent_count = static_cast<std::uint8_t>(std::min<std::size_t>(recent_count + 1U, recent_abs.size()));
  const float middle = middle_of(std::span(recent_abs).first(recent_count));
  // Each gain costs an exponential and a logarithm, and this runs for each bucket: the gains that are the same for any
  // size are precomputed. The largest size has z = 2.
  static const std::array<float, 2> kOfLargest{log_symmetric_gain(-2), log_symmetric_gain(2)};
  static const std::array<float, 2> kOfSign{log_symmetric_gain(-kSign), log_symmetric_gain(kSign)};
  const std::size_t rises = increment_bytes > 0 ? 1 : 0;
  gains = {log_symmetric_gain(2 * increment_bytes / (kMedians * middle)),
           size == largest_abs ? kOfLargest[rises] : log_symmetric_gain(2 * increment_bytes / largest_abs),
           kOfSign[rises]};
  for (std::size_t i = 0; i < kBets; ++i) log_e[i] = std::max(0.0F, log_e[i] + gains[i]);
  return gains;
}

void Level::push(Bucket bucket, bool weighs) {
  bucket.gain_nats = {};
  const bool same = size_ > 0 && bucket.floor_bytes == back().floor_bytes;
  if (regimes_.push(bucket.slot, bucket.floor_bytes)) forgotten_floor_ = 0;
  if (size_ > 0 && weighs) {
    bucket.gain_nats = drift_.observe(bucket.floor_bytes - back().floor_bytes);
    for (std::size_t i = 0; i < DriftEvidence::kBets; ++i)
      if (std::abs(bucket.gain_nats[i]) > kHardlyWeighs) ++moves_[i];
  }
  if (size_ == kCapacity) {
    if (ring_[head_].slot >= regimes_.begins()) forgotten_floor_ = std::max(forgotten_floor_, ring_[head_].floor_bytes);
    ring_[head_] = bucket;
    head_ = (head_ + 1) % kCapacity;
  } else {
    // Until the ring is full, its oldest bucket is at 0.
    if (size_ < ring_.size()) {
      ring_[size_] = bucket;
    } else {
      reserve_one_more(ring_, kCapacity);
      ring_.push_back(bucket);
    }
    ++size_;
  }
  same_ = same ? std::min(same_ + 1, kCapacity) : 1;
}

void Level::clear(bool keep_highs) {
  if (keep_highs)
    regimes_.fall();
  else
    regimes_.clear();
  forgotten_floor_ = 0;
  head_ = size_ = same_ = 0;
  moves_ = {};
  drift_ = DriftEvidence{};
}

std::uint32_t Scales::observe(Timestamp time, float bytes, std::size_t finest) {
  std::uint32_t mask = 0;
  if (!started_) {
    if (!has_first_) first_ = time;
    has_first_ = true;
    started_ = true;
    const auto slot = static_cast<std::int32_t>((time - first_) / kFinest);
    boundary_ = first_ + kFinest * (slot + 1);
    open_[0] = {slot, bytes, bytes, {}};
    alone_ = true;
    has_open_.fill(false);
    has_open_[0] = true;
    return 0;
  }
  if (time < boundary_) {
    before_last_ = open_[0];
    alone_ = false;
    open_[0].floor_bytes = std::min(open_[0].floor_bytes, bytes);
    open_[0].peak_bytes = std::max(open_[0].peak_bytes, bytes);
    return 0;
  }
  const auto slot = static_cast<std::int32_t>((time - first_) / kFinest);
  close_before(slot, mask, finest);
  open_[0] = {slot, bytes, bytes, {}};
  alone_ = true;
  has_open_[0] = true;
  boundary_ = first_ + kFinest * (static_cast<std::int64_t>(slot) + 1);
  return mask;
}

void Scales::replace_last(float bytes) {
  Bucket& open = open_[0];
  open.floor_bytes = alone_ ? bytes : std::min(before_last_.floor_bytes, bytes);
  open.peak_bytes = alone_ ? bytes : std::max(before_last_.peak_bytes, bytes);
}

void Scales::close_before(std::int32_t slot, std::uint32_t& mask, std::size_t finest) {
  for (std::size_t k = 0; k < kLevels; ++k) {
    if (!has_open_[k] || open_[k].slot == slot >> k) break;
    close(k, mask, k >= finest);
  }
}

void Scales::close(std::size_t k, std::uint32_t& mask, bool weighs) {
  const Bucket bucket = open_[k];
  has_open_[k] = false;
  levels_[k].push(bucket, weighs);
  mask |= 1U << k;
  if (k + 1 == kLevels) return;
  Bucket& up = open_[k + 1];
  if (has_open_[k + 1]) {  // the same span: observe() closes every level whose slot has moved on
    up.floor_bytes = std::min(up.floor_bytes, bucket.floor_bytes);
    up.peak_bytes = std::max(up.peak_bytes, bucket.peak_bytes);
    return;
  }
  up = {bucket.slot >> 1, bucket.floor_bytes, bucket.peak_bytes, {}};
  has_open_[k + 1] = true;
}

void Scales::restart(bool keep_highs) {
  const Bucket first = levels_[0].back();
  const Bucket open = open_[0];
  for (Level& level : levels_) level.clear(keep_highs);
  has_open_.fill(false);
  open_[0] = first;
  has_open_[0] = true;
  std::uint32_t mask = 0;
  close_before(open.slot, mask, 0);
  open_[0] = open;
  has_open_[0] = true;
}

double Scales::floor_at(Timestamp time) const {
  for (std::size_t k = 0; k < kLevels; ++k) {
    const Level& level = levels_[k];
    if (level.size() == 0 || start_of(k, level[0].slot) > time) continue;
    std::size_t i = level.size() - 1;
    while (i > 0 && start_of(k, level[i].slot) > time) --i;
    return static_cast<double>(level[i].floor_bytes);
  }
  return 0;
}

bool Scales::reaches_since(Timestamp time, double bytes) const {
  if (bytes <= 0) return true;
  const std::int64_t since = (time - first_).count();
  for (std::size_t k = 0; k < kLevels; ++k) {
    const Level& level = levels_[k];
    if (level.size() == 0) break;
    // The first slot that ends after `time`, as a whole number: this runs at every close, and walks up to 576 buckets.
    const std::int64_t width = Duration(kFinest).count() << k;
    const std::int64_t first_slot = since < 0 ? -1 : since / width;
    for (std::size_t i = level.size(); i-- > 0 && (i + 1 == level.size() || level[i].slot >= first_slot);)
      if (static_cast<double>(level[i].floor_bytes) >= bytes) return true;
    if (start_of(k, level[0].slot) <= time) break;
  }
  return false;
}

double Scales::quiet_before_s(std::size_t k, Timestamp time, double low_bytes, double high_bytes) const {
  Timestamp since = time;
  for (; k < kLevels; ++k) {
    const Level& level = levels_[k];
    for (std::size_t i = level.size(); i-- > 0;) {
      if (end_of(k, level[i].slot) > since) continue;  // within the rise, or covered by a finer level
      const auto floor = static_cast<double>(level[i].floor_bytes);
      if (floor < low_bytes || floor > high_bytes) return seconds_between(since, time);
      since = start_of(k, level[i].slot);
    }
  }
  return seconds_between(since, time);
}

Timestamp Scales::start_of(std::size_t k, std::int32_t slot) const {
  return first_ + kFinest * (static_cast<std::int64_t>(slot) << k);
}

Timestamp Scales::end_of(std::size_t k, std::int32_t slot) const {
  return start_of(k, slot + 1);
}

}  // namespace vramtrack
