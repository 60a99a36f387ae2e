#include "core/shared_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/errno_words.hpp"
#include "core/regular_file.hpp"

namespace vramtrack {

Status SharedFile::refresh(const Take& take) {
  if (path_.empty()) return {};
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0) {
    if (errno != ENOENT) return fail(fmt::format("cannot read {}: {}", path_, errno_words(errno)));
    if (seen_ns_ < 0) return {};
    seen_ns_ = -1;
    ++revision_;
    return take(nullptr);
  }
  const std::int64_t changed_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (changed_ns == seen_ns_ && info.st_ino == seen_inode_) return {};
  const auto text = read_regular_file(path_, most_bytes_, Links::refused);
  if (!text) return fail(text.error());
  if (!*text) return {};
  if (Status taken = take(&**text); !taken) return taken;
  seen_ns_ = changed_ns;
  seen_inode_ = info.st_ino;
  ++revision_;
  return {};
}

Status SharedFile::replace(const std::string& text, const Take& take) {
  if (Status written = replace_file(path_, text); !written) return written;
  return refresh(take);
}

}  // namespace vramtrack
