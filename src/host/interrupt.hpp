// SIGINT and SIGTERM as a request for an orderly end, and sleeping that they interrupt.
#pragma once

#include <chrono>

namespace vramtrack {

/// While one lives, the first SIGINT or SIGTERM is a request; the second ends the process as ever. At most one
/// at a time. Blocking system calls return early (EINTR) when the request comes.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// False where none lives. Any thread.
  [[nodiscard]] static bool requested();
  /// Sleeps until `deadline`; false when interrupted. A past deadline returns at once.
  static bool sleep_until(std::chrono::steady_clock::time_point deadline);
  /// Waits until `fd` is ready for `events` of poll(2), or has failed. False: the deadline has passed, or the process
  /// is asked to end, in whichever thread the signal came.
  static bool wait_ready(int fd, short events, std::chrono::steady_clock::time_point deadline);
};

}  // namespace vramtrack
