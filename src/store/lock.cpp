#include "store/lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/errno_words.hpp"

namespace vramtrack {
namespace {

/// The first `limit` bytes of a file; an unreadable file gives an empty text.
std::string head_of(int fd, std::size_t limit) {
  std::string text(limit, '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string own_command() {
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text = head_of(fd, 256);
  ::close(fd);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

/// "pid 12 since 2026-..., vramtrack watch": what the holder wrote. It may have taken the lock but not written that
/// yet.
std::string holder_of(int fd) {
  std::string text = head_of(fd, 512);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text.empty() ? "another process" : text;
}

}  // namespace

Result<WriterLock> WriterLock::take(const std::string& store_path, Timestamp now) {
  const std::string path = store_path + ".lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0)
    return fail(
        fmt::format("{}: cannot create the lock file: {}; the store's folder must be writable: change its "
                    "permissions, or set store.path to another place",
                    path, errno_words(errno)));
  WriterLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return fail(
          fmt::format("{}: another vramtrack writes this store: {}; end it, or set store.path to another file, or "
                      "watch without recording",
                      store_path, holder_of(fd)));
    return fail(
        fmt::format("{}: cannot be locked: {}; set store.path to a local file system", path, errno_words(errno)));
  }
  // The text is only for messages: if the disk is too full for it, the lock still holds.
  const std::string who = fmt::format("pid {}, since {}, command: {}\n", ::getpid(), iso8601(now), own_command());
  if (::ftruncate(fd, 0) == 0 && ::pwrite(fd, who.data(), who.size(), 0) < 0) errno = 0;
  return lock;
}

WriterLock& WriterLock::operator=(WriterLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

WriterLock::~WriterLock() {
  if (fd_ < 0) return;
  if (::ftruncate(fd_, 0) != 0) errno = 0;  // nobody holds it now: leave no outdated name
  ::close(fd_);
}

}  // namespace vramtrack
