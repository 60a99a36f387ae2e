#include "agent/supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "host/small_file.hpp"

namespace vramtrack::agent {
namespace {

/// Standard error goes to journald: $JOURNAL_STREAM names its device and inode (systemd.exec(5)).
bool is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  return stream != nullptr && ::fstat(STDERR_FILENO, &info) == 0 &&
         fmt::format("{}:{}", info.st_dev, info.st_ino) == stream;
}

}  // namespace

void notify_supervisor(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof address.sun_path) return;
  const std::size_t length = std::strlen(path);
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  [[maybe_unused]] const ssize_t sent = ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                                 reinterpret_cast<const sockaddr*>(&address), size);
  ::close(fd);
}

double watchdog_seconds() {
  const char* microseconds = std::getenv("WATCHDOG_USEC");
  const char* pid = std::getenv("WATCHDOG_PID");
  if (microseconds == nullptr || (pid != nullptr && std::atol(pid) != ::getpid())) return 0;
  return static_cast<double>(std::atoll(microseconds)) * 1e-6;
}

std::string reloading_state() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1'000'000LL + now.tv_nsec / 1000);
}

void log(Level level, std::string_view text) {
  static const bool journal = is_journal();
  std::string out;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    out += journal ? fmt::format("<{}>{}\n", static_cast<int>(level), line) : fmt::format("vramtrack: {}\n", line);
  }
  // A log that nobody reads (a full pipe, a hung journal) must not stop the sampling, and the loss cannot be
  // reported. Once poll() allows it, up to PIPE_BUF bytes are written at once and do not mix with other writers'
  // lines.
  for (std::string_view rest = out; !rest.empty();) {
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace vramtrack::agent
