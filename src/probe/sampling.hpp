// Which allocations are recorded. Every one, until there are more than the program can afford; from then on one in
// about so many bytes, so that what a site holds is still known within its sampling error.
#pragma once

#include <cstdint>

#include "probe/ring.hpp"

namespace vramtrack::probe {

/// Recorded allocations a second that a program is asked to bear: at about 1.5 µs each, 2 % of one core are 13,000.
inline constexpr std::uint64_t kMostPerSecond = 13'000;
/// What a program that was quiet for long may record at once, such as the first steps of a training: 10 s worth.
inline constexpr std::int64_t kMostSaved = 10 * static_cast<std::int64_t>(kMostPerSecond);

/// The interval, as a token bucket: what was not recorded in quiet times may be recorded later. Pure.
struct SamplingRate {
  std::uint64_t interval_bytes = 0;  ///< 0: every allocation is recorded
  std::int64_t saved = kMostSaved;   ///< records that may be made beyond kMostPerSecond

  /// After `elapsed_us` in which so many allocations were recorded, of all that together were `bytes`.
  void after(std::uint64_t recorded, std::uint64_t bytes, std::uint64_t elapsed_us);
};

/// Whether to record an allocation of `bytes`. Systematic sampling by bytes with a random phase: an allocation of b
/// bytes is recorded with probability min(1, b / interval), and then stands for max(b, interval) bytes. Changes of the
/// interval are written to the ring (Record::sampling). If so, `now_us` is the time of it by the ring's clock.
bool is_sampled(Ring& ring, std::uint64_t bytes, std::uint64_t& now_us);
/// In a child after a fork, whose ring says nothing of an interval: every allocation is recorded.
void forget_sampling();

}  // namespace vramtrack::probe
