#include "source/log/spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "core/errno_words.hpp"

namespace vramtrack {

Result<Spool> Spool::make() {
  const char* const given = std::getenv("TMPDIR");
  std::string folder = given != nullptr && *given != '\0' ? given : "/tmp";
  int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // A file system that does not support unnamed files.
    std::string name = folder + "/vramtrack-XXXXXX";
    fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(name.c_str());
  }
  if (fd < 0)
    return fail(fmt::format("cannot make a temporary file in {}: {}; name another folder in TMPDIR", folder,
                            errno_words(errno)));
  return Spool(fd, std::move(folder));
}

Spool::Spool(Spool&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), folder_(std::move(other.folder_)), size_(other.size_) {}

Spool& Spool::operator=(Spool&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(folder_, other.folder_);
  std::swap(size_, other.size_);
  return *this;
}

Spool::~Spool() {
  if (fd_ >= 0) ::close(fd_);
}

Status Spool::append(std::string_view bytes) {
  if (size_ + bytes.size() > kMostBytes)
    return fail(
        fmt::format("the log is not in order of time, and it is larger than the {} GiB that can be sorted in temporary "
                    "files; sort it by its time column first",
                    kMostBytes / kBytesPerGiB));
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fail(fmt::format("cannot write a temporary file in {}: {}; name a folder with more room in TMPDIR",
                              folder_, errno_words(n < 0 ? errno : ENOSPC)));
    size_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::size_t> Spool::read_at(std::uint64_t offset, std::span<char> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(fmt::format("cannot read a temporary file in {}: {}", folder_, errno_words(errno)));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::string Spool::path() const {
  return fmt::format("/proc/self/fd/{}", fd_);
}

}  // namespace vramtrack
