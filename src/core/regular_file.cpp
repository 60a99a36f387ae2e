#include "core/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"

namespace vramtrack {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

Result<std::optional<RegularFile>> RegularFile::open(const std::string& path, Links links, FileWay::Writers writers) {
  const FileWay way(path, links == Links::refused ? FileWay::LastLink::kept : FileWay::LastLink::followed, writers);
  if (!way.foreign_link().empty())
    return fail(fmt::format("{} is a symbolic link of another user; name the file itself", way.foreign_link()));
  int fd = -1;
  errno = way.error();
  if (way.folder() >= 0)
    fd = ::openat(way.folder(), way.name().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && errno == ENOENT) return std::optional<RegularFile>();
  if (fd < 0 && errno == ELOOP)
    return fail(links == Links::refused ? fmt::format("{} is a symbolic link; put the file itself there", path)
                                        : fmt::format("{} is a symbolic link that leads nowhere", path));
  if (fd < 0 && errno == ENXIO) return fail(fmt::format("{} is not a regular file; give a file", path));
  if (fd < 0) return fail(fmt::format("{} cannot be read ({}); check its permissions", path, errno_words(errno)));
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return std::optional(RegularFile(path, fd, info, way.writer()));
  ::close(fd);
  if (S_ISDIR(info.st_mode)) return fail(fmt::format("{} is a directory; name the file in it", path));
  return fail(fmt::format("{} is not a regular file; give a file", path));
}

RegularFile::~RegularFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> RegularFile::read(std::size_t most_bytes) const {
  std::string text;
  std::array<char, 16384> part;
  for (;;) {
    const ssize_t got = ::read(fd_, part.data(), part.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(fmt::format("{} cannot be read ({}); check its permissions", path_, errno_words(errno)));
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > most_bytes)
      return fail(fmt::format("{} is too large: it may have at most {} KiB", path_, most_bytes / 1024));
  }
}

Result<std::optional<std::string>> read_regular_file(const std::string& path, std::size_t most_bytes, Links links) {
  const auto file = RegularFile::open(path, links);
  if (!file) return fail(file.error());
  if (!*file) return std::optional<std::string>();
  auto text = (*file)->read(most_bytes);
  if (!text) return fail(text.error());
  return std::optional(std::move(*text));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n > 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (n == 0)
      errno = EIO;
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
  }
  return true;
}

Status sync_folder_of(const std::string& path) {
  const std::string place = folder_of(path);
  const Descriptor folder(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A file system may have nothing to sync in a folder.
  if (folder.get() < 0 || ::fsync(folder.get()) == 0 || errno == EINVAL) return {};
  return fail(fmt::format("cannot sync {}: {}", place, errno_words(errno)));
}

Status replace_file(const std::string& path, std::string_view text) {
  if (Status ours = check_links(path); !ours) return ours;
  const std::string next = path + ".new";
  ::unlink(next.c_str());  // left by a program that was killed
  int error = 0;
  {
    const Descriptor file(::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return fail(fmt::format("cannot write {}: {}", next, errno_words(errno)));
    if (!write_all(file.get(), text) || ::fsync(file.get()) != 0) error = errno;
  }
  if (error == 0 && ::rename(next.c_str(), path.c_str()) == 0) return sync_folder_of(path);
  if (error == 0) error = errno;
  ::unlink(next.c_str());
  return fail(fmt::format("cannot write {}: {}", path, errno_words(error)));
}

Result<FileLock> FileLock::open(const std::string& path) {
  if (const Status ours = check_links(path); !ours) return fail(ours.error());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0) return fail(fmt::format("cannot write {}: {}", path, errno_words(errno)));
  FileLock lock(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return fail(fmt::format("cannot write {}: it is not a regular file; move it away", path));
  return lock;
}

Result<FileLock> FileLock::take(const std::string& path) {
  auto lock = open(path);
  while (lock && ::flock(lock->fd_, LOCK_EX) != 0)
    if (errno != EINTR) return fail(fmt::format("cannot lock {}: {}", path, errno_words(errno)));
  return lock;
}

Result<std::optional<FileLock>> FileLock::take_now(const std::string& path) {
  auto lock = open(path);
  if (!lock) return fail(lock.error());
  if (::flock(lock->fd_, LOCK_EX | LOCK_NB) == 0) return std::optional(std::move(*lock));
  if (errno == EWOULDBLOCK) return std::optional<FileLock>();
  return fail(fmt::format("cannot lock {}: {}", path, errno_words(errno)));
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::optional<FileLock>> lock_beside(const std::string& path) {
  if (path.empty()) return std::optional<FileLock>();
  auto lock = FileLock::take(path + ".lock");
  if (!lock) return fail(lock.error());
  return std::optional(std::move(*lock));
}

}  // namespace vramtrack
