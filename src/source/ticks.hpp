// Ticks: cuts batches of any size into the ticks a live watch would have made of them.
#pragma once

#include <functional>

#include "core/sample.hpp"

namespace vramtrack {

/// A tick is all samples of one instant and the events up to it. Recorded sources hand over thousands of
/// samples at a time, cut anywhere; a caller that shows things as they happen takes them tick by tick.
///
/// A recording may hold any number of samples of one instant; the last value of a series at one instant counts. An
/// instant of more than kMostOfATick samples or events is handed over in parts, each a tick of that time.
class Ticks {
 public:
  /// More than the series of a recording (LogRows), which no instant of a live watch exceeds.
  static constexpr std::size_t kMostOfATick = 1U << 15;

  /// The tick, which may be moved from, and its time. False: stop, and take no more.
  using Take = std::function<bool(Batch& tick, Timestamp time)>;

  /// Calls `take` for every tick that is complete: the last instant of `batch` waits for the next call.
  /// False as soon as `take` returns false. O(samples).
  bool add(const Batch& batch, const Take& take);
  /// Hands over the waiting tick, if any. False when `take` returned false.
  bool finish(const Take& take);

 private:
  bool hand_over(const Take& take);

  Batch tick_;
  Timestamp time_{};
};

}  // namespace vramtrack
