#include "live/clock.hpp"

#include <algorithm>
#include <ctime>
#include <fstream>

#include "host/interrupt.hpp"

namespace vramtrack {
namespace {

/// Two readings less than this apart belong to one moment; it is far less than what Stamps takes for a jump.
constexpr Duration kTogether = std::chrono::milliseconds{1};
constexpr int kMostReadings = 10;

Duration boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

/// Empty if the kernel does not report it.
std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

/// Reads the two clocks one after the other, and again if another program ran in between.
ClockReading machine_reading() {
  ClockReading reading;
  for (int tries = 0; tries < kMostReadings; ++tries) {
    const Duration before = boot_time();
    reading.wall = time_of_day();
    reading.since_boot = boot_time();
    if (reading.since_boot - before < kTogether) break;
  }
  return reading;
}

template <class D>
D scaled(D span, double factor) {
  return std::chrono::duration_cast<D>(from_seconds(std::chrono::duration<double>(span).count() * factor));
}

}  // namespace

Timestamp time_of_day() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

Clock machine_clock() {
  return {machine_reading, [] { return std::chrono::steady_clock::now(); },
          [](SteadyTime deadline) { return Interrupt::sleep_until(deadline); }, boot_id()};
}

Clock compressed(const Clock& clock, double speed) {
  const ClockReading begin = clock.read();
  const SteadyTime steady = clock.steady();
  Clock fast;
  fast.read = [=, real = clock.read]() -> ClockReading {
    // All from one reading: a moment between two of them would be `speed` times as long.
    const Duration passed = scaled(real().since_boot - begin.since_boot, speed);
    return {begin.wall + passed, begin.since_boot + passed};
  };
  fast.steady = [=, real = clock.steady] { return steady + scaled(real() - steady, speed); };
  fast.sleep_until = [=, real = clock.sleep_until](SteadyTime deadline) {
    return real(steady + scaled(deadline - steady, 1 / speed));
  };
  return fast;
}

SteadyTime next_deadline(SteadyTime deadline, SteadyTime::duration interval, SteadyTime now) {
  return deadline + interval * std::max<std::int64_t>(1, (now - deadline + interval) / interval);
}

}  // namespace vramtrack
