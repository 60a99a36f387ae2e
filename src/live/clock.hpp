// Clock: the source of time of a live loop. It is injected, so that a test or a simulation can run the same loop.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/time.hpp"

namespace vramtrack {

/// A moment of the clock that counts deadlines. It never jumps.
using SteadyTime = std::chrono::steady_clock::time_point;

/// Both clocks at one moment: together they distinguish a clock that was set from time that passed.
struct ClockReading {
  Timestamp wall;         ///< the time of day, which may be set
  Duration since_boot{};  ///< never set, and it continues while the machine sleeps
};

struct Clock {
  std::function<ClockReading()> read;
  std::function<SteadyTime()> steady;           ///< the clock that counts deadlines
  std::function<bool(SteadyTime)> sleep_until;  ///< false: asked to end meanwhile. A past deadline returns at once.
  std::string
      boot_id;  ///< the boot id of this start of the machine, to compare readings of two runs. Empty: of this run only
};

/// This machine's time of day, for messages to people; samples are stamped by a loop's Clock.
Timestamp time_of_day();

/// This machine's clocks. Sleeping ends early at SIGINT or SIGTERM while an Interrupt exists.
Clock machine_clock();

/// The same clock, but from now on its time passes `speed` times as fast: an hour at speed 60 takes a minute.
/// REQUIRES: speed > 0.
Clock compressed(const Clock& clock, double speed);

/// The first moment after `deadline`, in steps of `interval`, that is not past at `now`. Missed ones are not made up
/// for: the deadlines pause while polls are slow or the machine sleeps. REQUIRES: interval > 0.
SteadyTime next_deadline(SteadyTime deadline, SteadyTime::duration interval, SteadyTime now);

}  // namespace vramtrack
