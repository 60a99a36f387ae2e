// Files that a program with rights of others' opens: what is at the path must be a regular file, and the one that was
// meant. A FIFO would let it wait for ever, and a link that somebody else made could lead it to any file.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.hpp"

namespace vramtrack {

/// What becomes of a symbolic link at the end of a path.
enum class Links : std::uint8_t {
  refused,   ///< of files that only programs write: queues, locks, states
  of_owner,  ///< of files that people name (configuration, tokens, certificates): a link of root's or of this user's is
             ///< followed, as mounted secrets and certbot's need; one of anybody else is refused
};

/// A regular file, open for reading.
class RegularFile {
 public:
  /// nullopt where there is none. Never waits. Errors name the path and what to do.
  static Result<std::optional<RegularFile>> open(const std::string& path, Links links);
  RegularFile(RegularFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), info_(other.info_) {}
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  /// From its beginning or where the last read ended. An error where it has more than `most_bytes`.
  [[nodiscard]] Result<std::string> read(std::size_t most_bytes) const;
  [[nodiscard]] const struct stat& info() const { return info_; }

 private:
  RegularFile(std::string path, int fd, const struct stat& info) : path_(std::move(path)), fd_(fd), info_(info) {}
  std::string path_;
  int fd_;
  struct stat info_;
};

/// The whole of it, as RegularFile.
Result<std::optional<std::string>> read_regular_file(const std::string& path, std::size_t most_bytes, Links links);

/// Puts a file of mode 0600 with `text` in the place of what is at `path`: whole or not at all, and on the disk when
/// this returns. Writes `path`.new first, over whatever lies there.
Status replace_file(const std::string& path, std::string_view text);

/// While it lives, no other program holds the lock of `path`, a file that is made for it (mode 0600).
class FileLock {
 public:
  /// Waits for whoever holds it.
  static Result<FileLock> take(const std::string& path);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

/// While it lives no other program that does the same changes the file at `path`: what is read is what is written back.
/// Takes the lock of `path`.lock; nullopt where `path` is empty, since without a file there is nothing to guard.
Result<std::optional<FileLock>> lock_beside(const std::string& path);

}  // namespace vramtrack
