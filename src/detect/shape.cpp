#include "detect/shape.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/units.hpp"

namespace vramtrack {
namespace {

// Steps.

/// Smaller steps come from how allocators reserve (2 and 20 MiB segments), not from events of the program.
constexpr double kMinStepBytes = 32.0 * kMiB;
/// Below this many buckets, stairs cannot be distinguished from a few rises.
constexpr std::size_t kStairBuckets = 9;
/// The fewest rises that make up this share of the net are its steps; there must be at least this many of them.
constexpr double kStepsMake = 0.8;
constexpr std::size_t kLeastSteps = 3;
/// Treads are flat: they move by at most this share of the smallest step, ...
constexpr double kTreadShare = 0.2;
/// ... and at least one bucket in kFlatOneIn is flat. All falls together are at most this share of the net growth.
constexpr std::size_t kFlatOneIn = 2;
constexpr double kMostFallen = 0.2;
/// Stairs are looked for at the window's level and at this many finer ones: a coarse bucket smooths them away.
constexpr std::size_t kFinerLevels = 2;

// The other patterns.

/// A single rise that makes up this share of the net is a spike.
constexpr double kSpikeShare = 0.8;
/// A cycle's swing within a bucket is this many times the rise per bucket, and these shares of the net and the level.
constexpr double kCycleRises = 3;
constexpr double kCycleNetShare = 0.2;
constexpr double kCycleLevelShare = 0.05;
/// From this R^2 on, a growth is a line, and so gradual: the line explains half of the variance.
constexpr double kGradualRSquared = 0.5;

// Jumps.

/// How many finest buckets (10 s) back a jump may have begun: about 30 s, as in spike-window-seconds.
constexpr std::int32_t kJumpBuckets = 3;
/// A rise within this time after a jump is part of that jump, which is still arriving.
constexpr double kSameJump_s = kSecondsPerMinute;
/// A jump from below this share of the limit (if unknown: of the new level) starts from nothing: it is a load.
constexpr double kNothingOfLimit = 0.05;
constexpr double kNothingOfLevel = 0.2;
/// A jump of which less than this share is left is gone again.
constexpr double kGoneShare = 0.2;
/// It still grows if the level is above its top by this share of the jump, and the latest part of the time since (one
/// in kLatePart) has had half of its proportional share of that.
constexpr double kGrownShare = 0.25;
constexpr int kLatePart = 4;
constexpr double kLateShare = 0.125;

/// Whether a few large rises, with flat treads between, make up the rise of level `k` since `start`.
bool staircase(const Scales& scales, std::size_t k, Timestamp start) {
  const Level& level = scales.level(k);
  std::array<double, Level::kCapacity> rises{};
  std::size_t n = 0;
  double net = 0;
  double fallen = 0;
  for (std::size_t i = 1; i < level.size(); ++i) {
    if (scales.end_of(k, level[i - 1].slot) < start) continue;
    const double x = static_cast<double>(level[i].floor_bytes) - static_cast<double>(level[i - 1].floor_bytes);
    rises[n++] = x;
    net += x;
    fallen -= std::min(x, 0.0);
  }
  if (n < kStairBuckets || !(net > 0) || fallen > kMostFallen * net) return false;
  std::sort(rises.begin(), rises.begin() + static_cast<std::ptrdiff_t>(n), std::greater<>());
  double sum = 0;
  std::size_t steps = 0;
  while (steps < n && sum < kStepsMake * net) sum += rises[steps++];
  const double tread_bytes = steps > 0 ? kTreadShare * rises[steps - 1] : 0;
  const auto flat = std::count_if(rises.begin(), rises.begin() + static_cast<std::ptrdiff_t>(n),
                                  [&](double x) { return std::abs(x) <= tread_bytes; });
  return steps >= kLeastSteps && kFlatOneIn * static_cast<std::size_t>(flat) >= n && rises[steps - 1] >= kMinStepBytes;
}

}  // namespace

Pattern shape_of(const Scales& scales, const Evidence& e, double r_squared) {
  if (e.largest_step >= kSpikeShare) return Pattern::sudden_spike;
  const double per_bucket = e.net_bytes / std::max(1, e.buckets);
  const double level_bytes = e.start_bytes + e.net_bytes;
  if (e.swing_bytes >=
      std::max({kCycleRises * per_bucket, kCycleNetShare * e.net_bytes, kCycleLevelShare * level_bytes, kMinStepBytes}))
    return Pattern::cyclic;
  for (std::size_t k = e.level + 1; k-- > 0 && k + kFinerLevels >= e.level;)
    if (staircase(scales, k, e.start)) return Pattern::step_increase;
  return r_squared >= kGradualRSquared ? Pattern::gradual_leak : Pattern::unknown;
}

void Jumps::on_close(const Scales& scales, double spike_share, double min_bytes, std::optional<double> limit_bytes) {
  const Level& finest = scales.level(0);
  const std::size_t n = finest.size();
  if (n == 0) return;
  const Bucket& now = finest.back();
  const auto floor = static_cast<double>(now.floor_bytes);
  const Timestamp time = scales.end_of(0, now.slot);
  const bool same = last_ && seconds_between(last_->time, time) <= kSameJump_s;
  if (same) last_->top_bytes = std::max(last_->top_bytes, floor);
  double base = floor;
  bool any = false;
  for (std::size_t i = n - 1; i > 0 && now.slot - finest[i - 1].slot <= kJumpBuckets; --i) {
    base = std::min(base, static_cast<double>(finest[i - 1].floor_bytes));
    any = true;
  }
  if (!any && n >= 2) base = static_cast<double>(finest[n - 2].floor_bytes);
  const double rise = floor - base;
  const bool from_nothing = limit_bytes ? base < kNothingOfLimit * *limit_bytes : base < kNothingOfLevel * floor;
  const double needed = from_nothing && limit_bytes ? spike_share * *limit_bytes : spike_share * base;
  if (rise < std::max(needed, min_bytes)) return;
  if (same) return;
  last_ = Jump{time, base, floor, from_nothing};
}

SpikeOutcome Jumps::outcome(const Scales& scales, Timestamp now, double floor_now_bytes) const {
  if (!last_) return SpikeOutcome::none;
  const double jump = last_->top_bytes - last_->from_bytes;
  if (floor_now_bytes - last_->from_bytes < kGoneShare * jump) return SpikeOutcome::none;
  const double since = floor_now_bytes - last_->top_bytes;
  const Timestamp then = now - (now - last_->time) / kLatePart;
  const bool still = since > kGrownShare * jump && floor_now_bytes - scales.floor_at(then) >= kLateShare * since;
  return still ? SpikeOutcome::still_growing : SpikeOutcome::stabilised;
}

}  // namespace vramtrack
