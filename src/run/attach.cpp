#include "run/attach.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "core/errno_words.hpp"
#include "core/printable.hpp"
#include "host/process.hpp"
#include "host/small_file.hpp"

// glibc has a wrapper only since 2.36.
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace vramtrack::run {
namespace {

std::uint64_t start_of(std::uint32_t pid) {
  std::string scratch;
  const auto alive = process_alive("/proc", pid, scratch);
  return alive ? alive->start_ticks : 0;
}

/// The version at the beginning of `text`, such as "3.11", else empty.
std::string version_at(std::string_view text) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, bad] = std::from_chars(text.data(), end, major);
  if (bad != std::errc{} || dot == end || *dot != '.' || major != 3) return {};
  const auto [rest, worse] = std::from_chars(dot + 1, end, minor);
  return worse != std::errc{} ? std::string{} : fmt::format("3.{}", minor);
}

}  // namespace

Result<AttachTarget> AttachTarget::open(std::uint32_t pid) {
  if (pid == static_cast<std::uint32_t>(::getpid())) return fail("that is vramtrack itself");
  AttachTarget target;
  target.pid_ = pid;
  // Compare the start time before and after opening; no two processes with one pid share it.
  const std::uint64_t started = start_of(pid);
  target.pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U));
  const int error = errno;
  if (started == 0 || (target.pidfd_ < 0 && error == ESRCH))
    return fail(fmt::format("process {} does not exist: it has ended, or is not visible from here", pid));
  if (target.pidfd_ < 0) return fail(fmt::format("process {} cannot be opened: {}", pid, errno_words(error)));
  struct stat status {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &status) != 0 || start_of(pid) != started)
    return fail(fmt::format("process {} has ended", pid));
  if (status.st_uid != ::getuid())
    return fail(fmt::format(
        "process {} is not yours: it belongs to user {}; only that user can attach to it (sudo -u '#{}' vramtrack "
        "attach {})",
        pid, status.st_uid, status.st_uid, pid));
  if (const std::string theirs = link_target(fmt::format("/proc/{}/ns/pid", pid));
      !theirs.empty() && theirs != link_target("/proc/self/ns/pid"))
    return fail(fmt::format(
        "process {} is in a container (another pid namespace): run vramtrack attach within the container, with the pid "
        "that the process has there",
        pid));
  return target;
}

AttachTarget::AttachTarget(AttachTarget&& other) noexcept {
  *this = std::move(other);
}
AttachTarget& AttachTarget::operator=(AttachTarget&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}
AttachTarget::~AttachTarget() {
  if (pidfd_ >= 0) ::close(pidfd_);
}

bool AttachTarget::has_ended() const {
  pollfd ended{pidfd_, POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0;
}

std::string python_version_of(std::string_view program, const std::vector<std::string>& mapped_names) {
  constexpr std::string_view kPython = "python";
  constexpr std::string_view kLibrary = "libpython";
  const std::string_view name = program.substr(program.rfind('/') + 1);
  if (name.starts_with(kPython))
    if (std::string version = version_at(name.substr(kPython.size())); !version.empty()) return version;
  for (const std::string& mapped : mapped_names)
    if (mapped.starts_with(kLibrary))
      if (std::string version = version_at(std::string_view(mapped).substr(kLibrary.size())); !version.empty())
        return version;
  return {};
}

std::string attach_socket_path(std::string_view net_unix, const std::vector<std::uint64_t>& inodes, std::uint32_t pid) {
  constexpr std::string_view kListens = "00010000";
  const std::string ending = fmt::format("/{}", pid);
  while (!net_unix.empty()) {
    // Num RefCount Protocol Flags Type St Inode Path
    std::string_view line = next_line(net_unix);
    std::vector<std::string_view> fields;
    while (fields.size() < 7) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      const std::size_t end = std::min(line.find(' '), line.size());
      if (end == 0) break;
      fields.push_back(line.substr(0, end));
      line.remove_prefix(end);
    }
    if (fields.size() < 7 || fields[3] != kListens) continue;
    const std::string_view path = trimmed(line);
    const auto inode = parse_unsigned(fields[6]);
    if (!inode || std::find(inodes.begin(), inodes.end(), *inode) == inodes.end()) continue;
    const std::string_view folder = path.ends_with(ending) ? path.substr(0, path.size() - ending.size()) : "";
    if (folder.starts_with('/') && folder.find("/vramtrack-attach") != std::string_view::npos) return std::string(path);
  }
  return {};
}

}  // namespace vramtrack::run
