#include "detect/creep.hpp"

#include <algorithm>
#include <cmath>

#include "core/units.hpp"

namespace vramtrack {
namespace {

/// A larger increment is a jump. The segments that hold small tensors are not jumps: they are at most 20 MiB (PyTorch's
/// allocator), or 2 MiB from cudaMalloc itself.
constexpr double kJumpBytes = 32 * kMiB;
/// Increments within this factor of a jump's least size belong to neither kind.
constexpr double kFactor = 2;
/// At most this share of all increments, and this many per jump, may lie between: otherwise the sizes are a continuum.
constexpr double kMostBetween = 0.03;
constexpr double kBetweenPerJump = 0.15;
constexpr double kBetweenAnyway = 0.005;
/// A program stands still between its jumps if most of the increments there are zero, and at least this many. One
/// that never does has noise of its own, so that a creep shows nothing.
constexpr double kStillShare = 0.5;
constexpr std::uint64_t kLeastStill = 30;
/// Fewer jumps cannot show whether they balance.
constexpr std::uint64_t kLeastJumps = 8;
/// The jumps are a load, and not noise on a slowly arriving one, if they move this share of the free memory.
constexpr double kLoadShare = 0.05;
/// The rises and falls of a program that releases what it takes differ by at most this share of both, ...
constexpr double kMostImbalance = 0.2;
/// ... and each of them is this many times the creep: otherwise the creep is what the falls release.
constexpr double kTimesCreep = 2;

}  // namespace

void Creep::observe(double used_bytes) {
  const double x = used_bytes - last_bytes_;
  last_bytes_ = used_bytes;
  if (!has_last_) {
    has_last_ = true;
    first_bytes_ = highest_bytes_ = used_bytes;
    return;
  }
  ++increments_;
  const double size = std::abs(x);
  if (size > kJumpBytes / kFactor && size < kJumpBytes * kFactor) ++between_;
  if (size <= kJumpBytes) {
    small_bytes_ += x;
    if (x == 0) ++still_;
    if (still_ >= kLeastStill && static_cast<double>(still_) >= kStillShare * static_cast<double>(increments_ - jumps_))
      stands_still_ = true;
    return;
  }
  ++jumps_;
  (x > 0 ? up_bytes_ : down_bytes_) += size;
  highest_bytes_ = std::max(highest_bytes_, used_bytes - small_bytes_);
  fall_bytes_ = std::max(fall_bytes_, highest_bytes_ - (used_bytes - small_bytes_));
}

bool Creep::is_busy(std::optional<double> free_bytes) const {
  return stands_still_ && jumps_ >= kLeastJumps && fall_bytes_ >= kLoadShare * free_bytes.value_or(highest_bytes_);
}

bool Creep::separable(std::optional<double> free_bytes) const {
  if (!is_busy(free_bytes)) return false;
  const auto n = static_cast<double>(increments_);
  const double most = std::min(kMostBetween, kBetweenPerJump * static_cast<double>(jumps_) / n + kBetweenAnyway);
  if (static_cast<double>(between_) > most * n) return false;
  if (std::abs(up_bytes_ - down_bytes_) > kMostImbalance * (up_bytes_ + down_bytes_)) return false;
  return std::min(up_bytes_, down_bytes_) >= kTimesCreep * small_bytes_;
}

double Creep::share_seen() const {
  return increments_ == 0 ? 1 : 1 - static_cast<double>(jumps_) / static_cast<double>(increments_);
}

}  // namespace vramtrack
