#include "core/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/file_way.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kCollected = 64UL * 1024;

tl::unexpected<Error> cannot_write(const std::string& path, int error) {
  return fail(fmt::format("cannot write {}: {}; choose another place", path, errno_words(error)));
}

tl::unexpected<Error> of_another_user(const std::string& path, std::string_view what) {
  return fail(fmt::format("cannot write {}: {}; choose another place", path, what));
}

Status check_way(const FileWay& way, const std::string& path) {
  if (!way.foreign_link().empty())
    return of_another_user(path, fmt::format("{} is a symbolic link of another user", way.foreign_link()));
  if (way.folder() < 0) return cannot_write(path, way.error());
  return {};
}

/// The file at the end of the path; false if there is none yet.
bool is_there(const FileWay& way, struct stat& info) {
  return ::fstatat(way.folder(), way.name().c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

/// A folder where everybody may create files, and only their owners may remove them. The kernel checks the same if
/// fs.protected_regular is set.
bool is_strangers(const FileWay& way, const struct stat& info) {
  struct stat folder {};
  if (::fstat(way.folder(), &folder) != 0 || (folder.st_mode & S_ISVTX) == 0 || (folder.st_mode & S_IWOTH) == 0)
    return false;
  return info.st_uid != ::geteuid() && info.st_uid != 0 && info.st_uid != folder.st_uid;
}

Result<int> open_there(const FileWay& way, const std::string& path, unsigned mode) {
  struct stat info {};
  if (is_there(way, info) && is_strangers(way, info))
    return of_another_user(path, "another user created it, in a folder that everybody can write to");
  // What a process has open has no name there: /dev/stdout leads to "pipe:[1234]" in /proc/self/fd. The kernel makes
  // these links.
  struct statfs system {};
  const bool is_open_file = ::fstatfs(way.folder(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
  constexpr int kHow = O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY;
  const int fd = is_open_file ? ::open(path.c_str(), kHow)
                              : ::openat(way.folder(), way.name().c_str(), kHow | O_CREAT | O_NOFOLLOW, mode);
  if (fd < 0) return cannot_write(path, errno);
  return fd;
}

std::string draft_of(const std::string& name) {
  return name + ".new";
}

}  // namespace

Result<int> open_output(const std::string& path, unsigned mode) {
  const FileWay way(path, FileWay::LastLink::followed, FileWay::Writers::ignored);
  if (const Status ours = check_way(way, path); !ours) return fail(ours.error());
  return open_there(way, path, mode);
}

Result<OutputFile> OutputFile::open(const std::string& path, Writes writes) {
  const FileWay way(path, FileWay::LastLink::followed, FileWay::Writers::ignored);
  if (const Status ours = check_way(way, path); !ours) return fail(ours.error());
  OutputFile file(path);
  struct stat info {};
  struct statfs system {};
  const bool is_file = is_there(way, info) ? S_ISREG(info.st_mode)
                                           : ::fstatfs(way.folder(), &system) == 0 && system.f_type != PROC_SUPER_MAGIC;
  if (writes == Writes::whole && is_file) {
    file.name_ = way.name();
    file.folder_ = ::fcntl(way.folder(), F_DUPFD_CLOEXEC, 0);
    const std::string draft = draft_of(file.name_);
    ::unlinkat(way.folder(), draft.c_str(), 0);  // left by a program that was killed
    file.fd_ = ::openat(way.folder(), draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file.folder_ < 0 || file.fd_ < 0) return cannot_write(draft_of(path), errno);
    return file;
  }
  const auto fd = open_there(way, path, 0644);
  if (!fd) return fail(fd.error());
  file.fd_ = *fd;
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      folder_(std::exchange(other.folder_, -1)),
      name_(std::move(other.name_)),
      waits_(std::move(other.waits_)),
      error_(other.error_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  OutputFile taken(std::move(other));
  std::swap(path_, taken.path_);
  std::swap(fd_, taken.fd_);
  std::swap(folder_, taken.folder_);
  std::swap(name_, taken.name_);
  std::swap(waits_, taken.waits_);
  std::swap(error_, taken.error_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && folder_ < 0) flush();
  if (fd_ >= 0 && folder_ >= 0) ::unlinkat(folder_, draft_of(name_).c_str(), 0);
  close();
}

void OutputFile::close() {
  if (fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0 && error_ == 0) error_ = errno;
  if (folder_ >= 0) ::close(std::exchange(folder_, -1));
}

void OutputFile::flush() {
  std::string_view rest = waits_;
  while (error_ == 0 && !rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n > 0)
      rest.remove_prefix(static_cast<std::size_t>(n));
    else if (n == 0 || errno != EINTR)
      error_ = n == 0 ? EIO : errno;
  }
  waits_.clear();
}

bool OutputFile::write(std::string_view text) {
  waits_ += text;
  if (waits_.size() >= kCollected) flush();
  return error_ == 0;
}

Status OutputFile::finish() {
  flush();
  if (folder_ >= 0) {
    const std::string draft = draft_of(name_);
    if (::close(std::exchange(fd_, -1)) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0 && ::renameat(folder_, draft.c_str(), folder_, name_.c_str()) != 0) error_ = errno;
    if (error_ != 0) ::unlinkat(folder_, draft.c_str(), 0);
  }
  close();
  if (error_ == 0) return {};
  return fail(
      fmt::format("cannot write all of {}: {}; free some space or choose another place", path_, errno_words(error_)));
}

Status write_output(const std::string& path, std::string_view text) {
  auto file = OutputFile::open(path);
  if (!file) return fail(file.error());
  file->write(text);
  return file->finish();
}

}  // namespace vramtrack
