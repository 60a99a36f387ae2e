#include "live/clock.hpp"

#include <algorithm>
#include <ctime>

#include "host/interrupt.hpp"

namespace vramtrack {
namespace {

Duration boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

template <class D>
D scaled(D span, double factor) {
  return std::chrono::duration_cast<D>(from_seconds(std::chrono::duration<double>(span).count() * factor));
}

}  // namespace

Clock machine_clock() {
  return {[] { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }, boot_time,
          [] { return std::chrono::steady_clock::now(); },
          [](SteadyTime deadline) { return Interrupt::sleep_until(deadline); }};
}

Clock compressed(Clock clock, double speed) {
  const Timestamp wall = clock.wall();
  const Duration boot = clock.since_boot();
  const SteadyTime steady = clock.steady();
  Clock fast;
  fast.wall = [=, real = clock.wall] { return wall + scaled(real() - wall, speed); };
  fast.since_boot = [=, real = clock.since_boot] { return boot + scaled(real() - boot, speed); };
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
