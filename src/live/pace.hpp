// Pace: lets recorded or simulated time pass at a chosen speed.
#pragma once

#include <chrono>
#include <optional>

#include "core/time.hpp"
#include "host/interrupt.hpp"

namespace vramtrack {

class Pace {
 public:
  /// `speed` recorded seconds a second; 0: as fast as possible.
  explicit Pace(double speed) : speed_(speed) {}

  /// Waits until it is time for a sample of `time`, the first one being due at once. False when interrupted.
  bool wait_for(Timestamp time) {
    if (speed_ <= 0) return !Interrupt::requested();
    if (!first_) {
      first_ = time;
      begin_ = std::chrono::steady_clock::now();
    }
    const Duration due = from_seconds(seconds_between(*first_, time) / speed_);
    return Interrupt::sleep_until(begin_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(due));
  }

  [[nodiscard]] bool is_paced() const { return speed_ > 0; }

 private:
  double speed_;
  std::optional<Timestamp> first_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace vramtrack
