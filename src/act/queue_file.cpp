#include "act/queue_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/errno_words.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMost = 4U << 20U;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Folders that are missing, mode 0700.
void make_folder(const std::string& folder) {
  for (std::size_t at = folder.find('/', 1);; at = folder.find('/', at + 1)) {
    ::mkdir(folder.substr(0, at).c_str(), 0700);  // that it failed shows when the file is opened
    if (at == std::string::npos) return;
  }
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

Result<QueueFile> QueueFile::open(const std::string& path) {
  make_folder(folder_of(path));
  const std::string lock_path = path + ".lock";
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return fail(fmt::format("cannot write {}: {}", lock_path, errno_words(errno)));
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const bool held = errno == EWOULDBLOCK;
    const std::string why = errno_words(errno);
    ::close(lock);
    if (held) return fail(fmt::format("another vramtrack uses {} and already sends these alerts", path));
    return fail(fmt::format("cannot lock {}: {}", lock_path, why));
  }
  return QueueFile(path, lock);
}

QueueFile::QueueFile(QueueFile&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

QueueFile::~QueueFile() {
  if (lock_ >= 0) ::close(lock_);
}

Result<std::optional<std::string>> QueueFile::read() const {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return std::optional<std::string>();
  if (fd < 0) return fail(fmt::format("cannot read {}: {}", path_, errno_words(errno)));
  std::string text;
  std::array<char, 65536> part{};
  ssize_t n = 0;
  while ((n = ::read(fd, part.data(), part.size())) != 0 && text.size() <= kMost) {
    if (n > 0)
      text.append(part.data(), static_cast<std::size_t>(n));
    else if (errno != EINTR)
      break;
  }
  const std::string why = n < 0 ? errno_words(errno) : std::string();
  ::close(fd);
  if (!why.empty()) return fail(fmt::format("cannot read {}: {}", path_, why));
  return std::optional<std::string>(std::move(text));
}

Status QueueFile::write(std::string_view text) const {
  const std::string next = path_ + ".new";
  const int fd = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail(fmt::format("cannot write {}: {}", next, errno_words(errno)));
  const bool written = write_all(fd, text) && ::fsync(fd) == 0;
  std::string why = written ? std::string() : errno_words(errno);
  ::close(fd);
  if (written && ::rename(next.c_str(), path_.c_str()) != 0) why = errno_words(errno);
  if (!why.empty()) {
    ::unlink(next.c_str());
    return fail(fmt::format("cannot write {}: {}", path_, why));
  }
  // The rename, too, is to survive a loss of power.
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

std::string QueueFile::put_aside() const {
  std::string aside = path_ + ".damaged";
  ::rename(path_.c_str(), aside.c_str());
  return aside;
}

}  // namespace vramtrack::act
