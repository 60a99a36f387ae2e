#include "act/queue_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/errno_words.hpp"
#include "core/file_way.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMost = 4U << 20U;

/// Creates missing folders with mode 0700.
void make_folders_above(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    ::mkdir(path.substr(0, at).c_str(), 0700);  // a failure is reported when the file is opened
}

}  // namespace

Result<QueueFile> QueueFile::open(const std::string& path) {
  if (const Status ours = check_links(path); !ours) return fail(ours.error());
  make_folders_above(path);
  auto lock = FileLock::take_now(path + ".lock");
  if (!lock) return fail(lock.error());
  if (!*lock) return fail(fmt::format("another vramtrack is using {} and is already sending these alerts", path));
  return QueueFile(path, std::move(**lock));
}

Result<std::optional<std::string>> QueueFile::read() const {
  return read_regular_file(path_, kMost, Links::refused);
}

Status QueueFile::write(std::string_view text) const {
  return replace_file(path_, text);
}

Result<std::string> QueueFile::put_aside() const {
  std::string aside = path_ + ".damaged";
  if (std::rename(path_.c_str(), aside.c_str()) == 0) return aside;
  return fail(fmt::format("cannot rename {} to {}: {}", path_, aside, errno_words(errno)));
}

}  // namespace vramtrack::act
