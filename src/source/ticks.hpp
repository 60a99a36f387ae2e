// Ticks: cuts batches of any size into the ticks that a live watch would have made of them.
#pragma once

#include <functional>

#include "core/sample.hpp"

namespace vramtrack {

/// A tick is all samples of one instant and the events up to it. Recorded sources hand over thousands of samples at a
/// time, cut anywhere; a caller that shows things as they happen takes them tick by tick.
///
/// A recording may hold any number of samples of one instant; the last value of a series counts. An instant with more
/// than kMostOfATick samples or events is handed over in parts, each a tick with that time.
class Ticks {
 public:
  /// More than the series of a recording (LogRows); no instant of a live watch has more.
  static constexpr std::size_t kMostOfATick = 1U << 15;

  /// Receives a tick, which may be moved from, and its time. Returns false to stop.
  using Take = std::function<bool(Batch& tick, Timestamp time)>;

  /// Calls `take` for every complete tick: the last instant of `batch` waits for the next call. Returns false as soon
  /// as `take` does. O(samples).
  bool add(const Batch& batch, const Take& take);
  /// Hands over the waiting tick, if any. Returns false if `take` did.
  bool finish(const Take& take);

 private:
  bool hand_over(const Take& take);

  Batch tick_;
  Timestamp time_{};
};

}  // namespace vramtrack
