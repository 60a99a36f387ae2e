#include "host/interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace vramtrack {
namespace {

volatile std::sig_atomic_t g_requested = 0;
int g_living = 0;
// The handler's byte in this pipe wakes poll() even if the signal came just before it: no lost wake-up.
int g_pipe[2] = {-1, -1};

void on_signal(int) {
  const int kept = errno;
  g_requested = 1;
  const char byte = 1;
  if (::write(g_pipe[1], &byte, 1) < 0) errno = kept;  // a full pipe does just as well
  errno = kept;
}

}  // namespace

Interrupt::Interrupt() {
  if (g_living++ == 0) {
    g_requested = 0;
    if (::pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) g_pipe[0] = g_pipe[1] = -1;
  }
  if (g_requested != 0) return;  // the next signal is the second
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  char byte = 0;
  while (::read(g_pipe[0], &byte, 1) == 1) continue;  // it would wake the outer one forever
  if (--g_living == 0)
    for (int& fd : g_pipe) {
      if (fd >= 0) ::close(fd);
      fd = -1;
    }
  g_requested = 0;  // what is asked of a server afterwards is not part of what was interrupted
}

bool Interrupt::requested() {
  return g_requested != 0;
}

bool Interrupt::sleep_until(std::chrono::steady_clock::time_point deadline) {
  wait_ready(-1, 0, deadline);
  return !requested();
}

bool Interrupt::wait_ready(int fd, short events, std::chrono::steady_clock::time_point deadline) {
  using namespace std::chrono;
  while (!requested()) {
    const auto left = deadline - steady_clock::now();
    if (left <= nanoseconds{0}) return false;
    const auto s = duration_cast<seconds>(left);
    const timespec timeout{static_cast<time_t>(s.count()), static_cast<long>((nanoseconds(left) - s).count())};
    pollfd wake[] = {{g_pipe[0], POLLIN, 0}, {fd, events, 0}};  // a negative number is ignored
    ::ppoll(wake, 2, &timeout, nullptr);
    if (wake[1].revents != 0) return true;
  }
  return false;
}

}  // namespace vramtrack
