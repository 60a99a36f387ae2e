#include "detect/shape.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace vramtrack {
namespace {

/// Steps smaller than this are how allocators reserve (2 and 20 MiB segments), not events of the program.
constexpr double kMinStepBytes = 32.0 * 1048576;

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
  if (n < 9 || !(net > 0) || fallen > 0.2 * net) return false;  // treads are flat
  std::sort(rises.begin(), rises.begin() + static_cast<std::ptrdiff_t>(n), std::greater<>());
  double sum = 0;
  std::size_t steps = 0;
  while (steps < n && sum < 0.8 * net) sum += rises[steps++];
  const double tread_bytes = steps > 0 ? 0.2 * rises[steps - 1] : 0;
  const auto flat = std::count_if(rises.begin(), rises.begin() + static_cast<std::ptrdiff_t>(n),
                                  [&](double x) { return std::abs(x) <= tread_bytes; });
  return steps >= 3 && 2 * static_cast<std::size_t>(flat) >= n && rises[steps - 1] >= kMinStepBytes;
}

}  // namespace

Pattern shape_of(const Scales& scales, const Evidence& e, double r_squared) {
  if (e.largest_step >= 0.8) return Pattern::sudden_spike;
  const double per_bucket = e.net_bytes / std::max(1, e.buckets);
  const double level_bytes = e.start_bytes + e.net_bytes;
  if (e.swing_bytes >= std::max({3 * per_bucket, 0.2 * e.net_bytes, 0.05 * level_bytes, kMinStepBytes}))
    return Pattern::cyclic;
  for (std::size_t k = e.level + 1; k-- > 0 && k + 3 > e.level;)
    if (staircase(scales, k, e.start)) return Pattern::step_increase;
  return r_squared >= 0.5 ? Pattern::gradual_leak : Pattern::unknown;
}

void Jumps::on_close(const Scales& scales, double spike_share, double min_bytes, std::optional<double> limit_bytes) {
  const Level& finest = scales.level(0);
  const std::size_t n = finest.size();
  if (n == 0) return;
  const Bucket& now = finest.back();
  const auto floor = static_cast<double>(now.floor_bytes);
  const Timestamp time = scales.end_of(0, now.slot);
  if (last_ && seconds_between(last_->time, time) <= 60) last_->top_bytes = std::max(last_->top_bytes, floor);
  double base = floor;
  bool any = false;
  for (std::size_t i = n - 1; i > 0 && now.slot - finest[i - 1].slot <= 3; --i) {
    base = std::min(base, static_cast<double>(finest[i - 1].floor_bytes));
    any = true;
  }
  if (!any && n >= 2) base = static_cast<double>(finest[n - 2].floor_bytes);
  const double rise = floor - base;
  const bool from_nothing = limit_bytes ? base < 0.05 * *limit_bytes : base < 0.2 * floor;
  const double needed = from_nothing && limit_bytes ? spike_share * *limit_bytes : spike_share * base;
  if (rise < std::max(needed, min_bytes)) return;
  if (last_ && seconds_between(last_->time, time) <= 60) return;  // the same jump, still arriving
  last_ = Jump{time, base, floor, from_nothing};
}

SpikeOutcome Jumps::outcome(const Scales& scales, Timestamp now, double floor_now_bytes) const {
  if (!last_) return SpikeOutcome::none;
  const double jump = last_->top_bytes - last_->from_bytes;
  if (floor_now_bytes < last_->from_bytes + 0.2 * jump) return SpikeOutcome::none;
  const double since = floor_now_bytes - last_->top_bytes;
  const Timestamp then = now - (now - last_->time) / 4;
  const bool still = since > 0.25 * jump && floor_now_bytes - scales.floor_at(then) >= 0.125 * since;
  return still ? SpikeOutcome::still_growing : SpikeOutcome::stabilised;
}

}  // namespace vramtrack
