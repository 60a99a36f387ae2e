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

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/file_way.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMost = 4U << 20U;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Creates missing folders with mode 0700.
void make_folder(const std::string& folder) {
  for (std::size_t at = folder.find('/', 1);; at = folder.find('/', at + 1)) {
    ::mkdir(folder.substr(0, at).c_str(), 0700);  // a failure shows when the file is opened
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
  if (const Status ours = check_links(path); !ours) return fail(ours.error());
  make_folder(folder_of(path));
  const std::string lock_path = path + ".lock";
  Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (lock.get() < 0) return fail(fmt::format("cannot write {}: {}", lock_path, errno_words(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return fail(fmt::format("another vramtrack uses {} and already sends these alerts", path));
    return fail(fmt::format("cannot lock {}: {}", lock_path, errno_words(errno)));
  }
  QueueFile file(path, -1);
  file.lock_ = lock.release();
  return file;
}

QueueFile::QueueFile(QueueFile&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

QueueFile::~QueueFile() {
  if (lock_ >= 0) ::close(lock_);
}

Result<std::optional<std::string>> QueueFile::read() const {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOENT) return std::optional<std::string>();
  if (file.get() < 0) return fail(fmt::format("cannot read {}: {}", path_, errno_words(errno)));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(fmt::format("cannot read {}: it is not a regular file; move it away", path_));
  std::string text;
  std::array<char, 65536> part{};
  ssize_t n = 0;
  while ((n = ::read(file.get(), part.data(), part.size())) != 0 && text.size() <= kMost) {
    if (n > 0)
      text.append(part.data(), static_cast<std::size_t>(n));
    else if (errno != EINTR)
      break;
  }
  if (n < 0) return fail(fmt::format("cannot read {}: {}", path_, errno_words(errno)));
  return std::optional<std::string>(std::move(text));
}

Status QueueFile::write(std::string_view text) const {
  const std::string next = path_ + ".new";
  ::unlink(next.c_str());  // whatever is there: left by a killed program, or put there by somebody
  bool written = false;
  {
    const Descriptor file(::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return fail(fmt::format("cannot write {}: {}", next, errno_words(errno)));
    written = write_all(file.get(), text) && ::fsync(file.get()) == 0;
  }
  if (!written || ::rename(next.c_str(), path_.c_str()) != 0) {
    const int why = errno;
    ::unlink(next.c_str());
    return fail(fmt::format("cannot write {}: {}", path_, errno_words(why)));
  }
  // The rename must survive a loss of power too.
  const std::string place = folder_of(path_);
  const Descriptor folder(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A folder that we may not read cannot be synced.
  if (folder.get() >= 0 && ::fsync(folder.get()) != 0)
    return fail(fmt::format("cannot sync {}: {}", place, errno_words(errno)));
  return {};
}

Result<std::string> QueueFile::put_aside() const {
  std::string aside = path_ + ".damaged";
  if (::rename(path_.c_str(), aside.c_str()) == 0) return aside;
  return fail(fmt::format("cannot rename {} to {}: {}", path_, aside, errno_words(errno)));
}

}  // namespace vramtrack::act
