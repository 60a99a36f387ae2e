#include "store/private_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/errno_words.hpp"

namespace vramtrack {
namespace {

struct Descriptor {
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  int fd = -1;
};

Result<gid_t> group_id(const std::string& name) {
  std::array<char, 16384> names{};
  struct group entry {};
  struct group* found = nullptr;
  if (getgrnam_r(name.c_str(), &entry, names.data(), names.size(), &found) == 0 && found != nullptr)
    return found->gr_gid;
  return fail(fmt::format("store.group: there is no group '{}'; correct the name, or create it with 'groupadd'", name));
}

}  // namespace

Status make_private(const std::string& path, const std::string& group) {
  // Does not wait for a FIFO, and does not follow a link to another user's file.
  const Descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)};
  if (file.fd < 0 && errno == ELOOP)
    return fail(fmt::format("{}: is a symbolic link; set store.path to the file itself", path));
  struct stat info {};
  // If it can only be read, or not even that, SQLite reports why.
  if (file.fd < 0 && (errno != ENXIO && errno != EISDIR)) return {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode))
    return fail(fmt::format("{}: is not a regular file; set store.path to a file", path));
  mode_t mode = 0600;
  if (!group.empty()) {
    const auto id = group_id(group);
    if (!id) return fail(id.error());
    mode = 0640;
    if (info.st_gid != *id && ::fchown(file.fd, static_cast<uid_t>(-1), *id) != 0)
      return fail(
          fmt::format("{}: cannot be given to the group '{}': {}; become a member of it, or leave store.group empty",
                      path, group, errno_words(errno)));
  }
  if ((info.st_mode & 07777U) != mode && info.st_uid == ::geteuid() && ::fchmod(file.fd, mode) != 0)
    return fail(fmt::format("{}: cannot be made private: {}; check who owns it", path, errno_words(errno)));
  return {};
}

}  // namespace vramtrack
