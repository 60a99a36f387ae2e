#include "host/held_process.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/errno_words.hpp"
#include "host/process.hpp"

// glibc has wrappers from 2.36 on only.
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

namespace vramtrack {

Result<HeldProcess> HeldProcess::open(const std::string& proc_root, std::uint32_t pid, std::uint64_t start_ticks) {
  if (start_ticks == 0)
    return fail(
        fmt::format("the start time of pid {} is unknown: it could be another process by now; use kill {}", pid, pid));
  // Signalling init by mistake would end the machine or the container.
  if (pid <= 1) return fail("pid 1 runs this machine or container: vramtrack does not signal it");
  if (pid == static_cast<std::uint32_t>(::getpid())) return fail("that is vramtrack itself; q ends it");
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U));
  if (fd < 0) {
    if (errno == ESRCH) return fail(fmt::format("pid {} has ended, or is in another pid namespace", pid));
    return fail(fmt::format("pid {} cannot be opened: {}; use kill {}", pid, errno_words(errno), pid));
  }
  // Open the descriptor first, then compare: if the pid had been reused before, the start ticks differ; if it is
  // reused later, the descriptor still refers to the old process.
  auto info = read_process(proc_root, pid);
  if (!info || info->start_ticks != start_ticks) {
    ::close(fd);
    return fail(info ? fmt::format("pid {} is another process now: no signal was sent", pid)
                     : fmt::format("pid {} has ended", pid));
  }
  std::string path;
  if (!process_alive(proc_root, pid, path)) {
    ::close(fd);
    return fail(fmt::format("pid {} has ended: it only waits for its parent to reap it", pid));
  }
  return HeldProcess(fd, std::move(*info));
}

HeldProcess& HeldProcess::operator=(HeldProcess&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(info_, other.info_);
  return *this;
}

HeldProcess::~HeldProcess() {
  if (fd_ >= 0) ::close(fd_);
}

Status HeldProcess::send(int signal) const {
  if (::syscall(SYS_pidfd_send_signal, fd_, signal, nullptr, 0U) == 0) return {};
  if (errno == ESRCH) return fail(fmt::format("pid {} has ended by itself", info_.pid));
  if (errno == EPERM)
    return fail(
        fmt::format("no permission to signal pid {} of {}; as root: kill {}", info_.pid, info_.user, info_.pid));
  return fail(fmt::format("pid {} could not be signalled: {}", info_.pid, errno_words(errno)));
}

}  // namespace vramtrack
