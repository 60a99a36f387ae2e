// A clock that a test moves. Sleeping moves it to the deadline.
#pragma once

#include <memory>
#include <string>

#include "live/clock.hpp"

namespace vramtrack {

struct ManualTime {
  Timestamp wall{std::chrono::hours{24 * 365 * 56}};
  Duration boot{std::chrono::hours{1}};
  SteadyTime steady{};
  std::string boot_id;
  bool asked_to_end = false;
  Duration reading_takes{0};  ///< each reading of the clocks moves them by this much

  void pass(Duration span) {
    wall += span;
    boot += span;
    steady += std::chrono::duration_cast<SteadyTime::duration>(span);
  }
};

inline Clock manual_clock(const std::shared_ptr<ManualTime>& time) {
  return {[time] {
            time->pass(time->reading_takes);
            return ClockReading{time->wall, time->boot};
          },
          [time] { return time->steady; },
          [time](SteadyTime deadline) {
            if (time->asked_to_end) return false;
            if (deadline > time->steady) time->pass(deadline - time->steady);
            return true;
          },
          time->boot_id};
}

}  // namespace vramtrack
