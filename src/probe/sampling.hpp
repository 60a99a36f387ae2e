// Sampling: chooses which allocations are recorded: all, until there are more than the program can afford, then about
// one per interval of bytes, so that a site's memory is still known within the sampling error.
#pragma once

#include <cstdint>

#include "probe/ring.hpp"

namespace vramtrack::probe {

/// Maximum cost in recorded allocations per second: at about 1.5 µs each, 13,000 are 2 % of one core.
inline constexpr std::uint64_t kMostPerSecond = 13'000;
/// The records allowed at once after a long quiet time, such as for the first training steps: 10 s worth.
inline constexpr std::int64_t kMostSaved = 10 * static_cast<std::int64_t>(kMostPerSecond);

/// The interval, as a token bucket: records saved in quiet times may be made later. Pure.
struct SamplingRate {
  std::uint64_t interval_bytes = 0;  ///< 0: every allocation is recorded
  std::int64_t saved = kMostSaved;   ///< records that may be made in excess of kMostPerSecond

  /// Call after `elapsed_us` in which `recorded` allocations were recorded, out of `bytes` in total.
  void after(std::uint64_t recorded, std::uint64_t bytes, std::uint64_t elapsed_us);
};

/// Whether to record an allocation of `bytes`. Systematic sampling by bytes with a random phase: an allocation of b
/// bytes is recorded with probability min(1, b / interval), and then stands for max(b, interval) bytes. Changes of the
/// interval are written to the ring (Record::sampling). If it is, `now_us` is set to the time on the ring's clock.
bool is_sampled(Ring& ring, std::uint64_t bytes, std::uint64_t& now_us);
/// Call in a child after a fork: its ring contains no interval, so every allocation is recorded.
void forget_sampling();

}  // namespace vramtrack::probe
