// SIGINT and SIGTERM as a request for an orderly end, and sleeping that they interrupt.
#pragma once

#include <chrono>

namespace vramtrack {

/// While one exists, the first SIGINT or SIGTERM is a request; the second ends the process as usual. Blocking system
/// calls return early (EINTR) when the request comes. One made while another exists takes over its request, and answers
/// it: what follows is no longer interrupted, and a signal then ends the process. For one thread.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// False if none exists. Any thread.
  [[nodiscard]] static bool requested();
  /// Sleeps until `deadline`; false if interrupted. A past deadline returns at once.
  static bool sleep_until(std::chrono::steady_clock::time_point deadline);
  /// Waits until `fd` is ready for `events` of poll(2), or has failed. False if the deadline has passed, or the process
  /// was asked to end, whichever thread received the signal.
  static bool wait_ready(int fd, short events, std::chrono::steady_clock::time_point deadline);
};

}  // namespace vramtrack
