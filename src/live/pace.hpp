// Pace: lets recorded or simulated time pass at a chosen speed.
#pragma once

#include <optional>

#include "live/clock.hpp"

namespace vramtrack {

class Pace {
 public:
  /// `speed`: recorded seconds per second; 0: as fast as possible.
  Pace(double speed, Clock clock) : speed_(speed), clock_(std::move(clock)) {}

  /// Waits until a sample of `time` is due; the first one is due at once. False if asked to end.
  bool wait_for(Timestamp time) {
    if (speed_ <= 0) return clock_.sleep_until(clock_.steady());
    if (!first_) {
      first_ = time;
      begin_ = clock_.steady();
    }
    const Duration due = from_seconds(seconds_between(*first_, time) / speed_);
    return clock_.sleep_until(begin_ + std::chrono::duration_cast<SteadyTime::duration>(due));
  }

  [[nodiscard]] bool is_paced() const { return speed_ > 0; }

 private:
  double speed_;
  Clock clock_;
  std::optional<Timestamp> first_;
  SteadyTime begin_;
};

}  // namespace vramtrack
