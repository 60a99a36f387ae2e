#include "core/file_way.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <utility>

#include "core/descriptor.hpp"

namespace vramtrack {
namespace {

constexpr int kMostLinks = 16;  ///< half of the kernel's own limit
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

/// Root could change everything anyway.
bool is_of_us(uid_t user) {
  return user == 0 || user == ::geteuid();
}

std::string user_words(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return fmt::format("'{}'", entry.pw_name);
  return fmt::format("{}", user);
}

/// Whether this user, or root, is the group's only member: many systems give each user such a group, and a umask that
/// lets it write. A group without a known member is not one: its members may be kept elsewhere.
bool is_group_of_ours(gid_t group) {
  static std::mutex one_at_a_time;  // the C library lists users one after another
  const std::scoped_lock lock(one_at_a_time);
  struct group entry {};
  struct group* found = nullptr;
  std::vector<char> buffer(65536);
  if (::getgrgid_r(group, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return false;
  bool has_member = false;
  bool is_alone = true;
  const auto count = [&](uid_t user) {
    has_member = true;
    is_alone = is_alone && is_of_us(user);
  };
  for (char** name = entry.gr_mem; *name != nullptr; ++name) {
    passwd member{};
    passwd* known = nullptr;
    std::array<char, 4096> text{};
    if (::getpwnam_r(*name, &member, text.data(), text.size(), &known) == 0 && known != nullptr) count(member.pw_uid);
  }
  ::setpwent();
  while (const passwd* member = ::getpwent())  // NOLINT(concurrency-mt-unsafe): under the lock
    if (member->pw_gid == group) count(member->pw_uid);
  ::endpwent();
  return has_member && is_alone;
}

/// Whether more users are named than those of the mode: its group bits then apply to all of them.
bool has_access_list(int entry) {
  return ::getxattr(fmt::format("/proc/self/fd/{}", entry).c_str(), "system.posix_acl_access", nullptr, 0) >= 0 ||
         (errno != ENODATA && errno != ENOTSUP);
}

/// Whether another user may write to what is open there, which is not a link.
bool others_may_write(int entry, const struct stat& info) {
  if ((info.st_mode & kOthersWrite) == 0) return false;
  struct statvfs mount {};
  if (::fstatvfs(entry, &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0) return false;
  return (info.st_mode & S_IWOTH) != 0 || has_access_list(entry) || !is_group_of_ours(info.st_gid);
}

}  // namespace

FileWay::FileWay(const std::string& path, LastLink last, Writers writers) : writers_(writers) {
  walk(path, last);
}

void FileWay::walk(const std::string& path, LastLink last) {
  push(path);
  const bool is_absolute = path.starts_with('/');
  if (!is_absolute && writers_ == Writers::wanted) {
    std::error_code ec;
    push(std::filesystem::current_path(ec).string());
    if (ec) return end(ec.value());
  }
  start(is_absolute || writers_ == Writers::wanted ? "/" : ".");
  int links = 0;
  while (folder_ >= 0 && !pending_.empty()) {
    name_ = std::move(pending_.back());
    pending_.pop_back();
    const bool is_last = pending_.empty();
    Descriptor entry(::openat(folder_, name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (entry.get() < 0 || ::fstat(entry.get(), &info) != 0) {
      if (!is_last || errno != ENOENT) end(errno);
      return;
    }
    if (S_ISLNK(info.st_mode) && is_last && last == LastLink::kept) return;
    const std::string shown = at_.ends_with('/') ? at_ + name_ : at_ + '/' + name_;
    if (!judge(entry.get(), info, shown, is_last)) return end(ELOOP);
    if (S_ISLNK(info.st_mode)) {
      std::array<char, PATH_MAX> target{};
      const ssize_t size = ::readlinkat(entry.get(), "", target.data(), target.size());
      if (size <= 0 || ++links > kMostLinks) return end(ELOOP);
      const std::string_view text(target.data(), static_cast<std::size_t>(size));
      push(text);
      if (text.starts_with('/')) start("/");
      continue;
    }
    if (is_last && name_ != "..") return;
    if (!S_ISDIR(info.st_mode)) return end(ENOTDIR);
    ::close(std::exchange(folder_, entry.release()));
    folder_info_ = info;
    at_ = shown;
  }
  name_ = ".";
}

FileWay::~FileWay() {
  if (folder_ >= 0) ::close(folder_);
}

void FileWay::end(int error) {
  error_ = error;
  if (folder_ >= 0) ::close(std::exchange(folder_, -1));
}

void FileWay::start(const char* folder) {
  if (folder_ >= 0) ::close(folder_);
  folder_ = ::open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0 || ::fstat(folder_, &folder_info_) != 0) return end(errno);
  at_ = folder;
  is_strangers_ = false;
  judge(folder_, folder_info_, at_, false);
}

void FileWay::push(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  pending_.insert(pending_.end(), parts.rbegin(), parts.rend());
}

bool FileWay::judge(int entry, const struct stat& info, const std::string& shown, bool is_last) {
  const bool is_ours = is_of_us(info.st_uid);
  const bool is_link = S_ISLNK(info.st_mode);
  if (!is_ours && entry != folder_ && others_may_write(folder_, folder_info_)) is_strangers_ = true;
  if (is_link && !is_ours && (is_strangers_ || is_last)) {
    foreign_link_ = shown;
    return false;
  }
  if (writers_ == Writers::ignored || !writer_.empty()) return true;
  const bool keeps_ours = S_ISDIR(info.st_mode) && !is_last && (info.st_mode & S_ISVTX) != 0;
  if (!is_ours)
    writer_ = fmt::format("{} belongs to the user {}; run 'chown -h root {}', or keep the file elsewhere", shown,
                          user_words(info.st_uid), shown);
  else if (!is_link && !keeps_ours && others_may_write(entry, info))
    writer_ = fmt::format("{} can be written by other users; run 'chmod go-w {}'", shown, shown);
  return true;
}

Status check_links(const std::string& path) {
  const FileWay way(path, FileWay::LastLink::followed, FileWay::Writers::ignored);
  if (way.foreign_link().empty()) return {};
  return fail(fmt::format("{}: {} is a symbolic link of another user; name a place that leads through none", path,
                          way.foreign_link()));
}

std::string absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? value : "";
}

std::string others_who_write(const std::string& path) {
  const FileWay way(path, FileWay::LastLink::followed, FileWay::Writers::wanted);
  return way.folder() >= 0 ? way.writer() : std::string();
}

}  // namespace vramtrack
