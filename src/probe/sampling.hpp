// Sampling: chooses which allocations are recorded. All, until there are more than the program can afford; then about
// one per interval of bytes, so that a site's memory is still known within its sampling error.
#pragma once

#include <cstdint>

#include "probe/ring.hpp"

namespace vramtrack::probe {

/// Maximum cost in recorded allocations per second: at about 1.5 µs each, 13,000 are 2 % of one core.
inline constexpr std::uint64_t kMostPerSecond = 13'000;
/// What a program may record at once after a long quiet time, such as the first steps of a training: 10 s worth.
inline constexpr std::int64_t kMostSaved = 10 * static_cast<std::int64_t>(kMostPerSecond);

/// The interval, as a token bucket: records saved in quiet times may be made later. Pure.
struct SamplingRate {
  std::uint64_t interval_bytes = 0;  ///< 0: every allocation is recorded
  std::int64_t saved = kMostSaved;   ///< records that may be made beyond kMostPerSecond

  /// After `elapsed_us` in which this many allocations were recorded, out of `bytes` in total.
  void after(std::uint64_t recorded, std::uint64_t bytes, std::uint64_t elapsed_us);
};

/// Whether to record an allocation of `bytes`. Systematic sampling by bytes with a random phase: an allocation of b
/// bytes is recorded with probability min(1, b / interval), and then stands for max(b, interval) bytes. Changes of the
/// interval are written to the ring (Record::sampling). If so, `now_us` is the time of it by the ring's clock.
bool is_sampled(Ring& ring, std::uint64_t bytes, std::uint64_t& now_us);
/// In a child after a fork, whose ring contains no interval: every allocation is recorded.
void forget_sampling();

}  // namespace vramtrack::probe
