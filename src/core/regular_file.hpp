// Safe opening of files for a program with other rights than their owner: the path must lead to a regular file, the
// intended one. A FIFO could make the program wait forever, and another user's link could lead it to any file.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/file_way.hpp"
#include "core/result.hpp"

namespace vramtrack {

/// How a symbolic link at the end of a path is treated. A link of another user is not followed anywhere on it
/// (FileWay::foreign_link).
enum class Links : std::uint8_t {
  refused,   ///< for files that only programs write: queues, locks, states
  of_owner,  ///< for files that people name (configuration, tokens, certificates): a link of root's or of this user's
             ///< is followed, as needed for mounted secrets and certbot; anybody else's is refused
};

/// A regular file, open for reading.
class RegularFile {
 public:
  /// nullopt if there is none. Never blocks. Errors name the path and what to do.
  static Result<std::optional<RegularFile>> open(const std::string& path, Links links,
                                                 FileWay::Writers writers = FileWay::Writers::ignored);
  RegularFile(RegularFile&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        info_(other.info_),
        writer_(std::move(other.writer_)) {}
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  /// Reads from the beginning, or from where the last read ended. An error if there are more than `most_bytes`.
  [[nodiscard]] Result<std::string> read(std::size_t most_bytes) const;
  [[nodiscard]] const struct stat& info() const { return info_; }
  /// FileWay::writer(), if it was wanted.
  [[nodiscard]] const std::string& writer() const { return writer_; }

 private:
  RegularFile(std::string path, int fd, const struct stat& info, std::string writer)
      : path_(std::move(path)), fd_(fd), info_(info), writer_(std::move(writer)) {}
  std::string path_;
  int fd_;
  struct stat info_;
  std::string writer_;
};

/// Reads the whole file, as RegularFile does.
Result<std::optional<std::string>> read_regular_file(const std::string& path, std::size_t most_bytes, Links links);

/// Writes all of `text`; false, with errno set, if that fails.
bool write_all(int fd, std::string_view text);

/// After this, a file created or renamed at `path` survives a loss of power. A folder that may not be read
/// cannot be synced, and is not an error.
Status sync_folder_of(const std::string& path);

/// Replaces the file at `path` by one of mode 0600 with `text`: completely or not at all, and on the disk when this
/// returns. Writes `path`.new first, over any existing file.
Status replace_file(const std::string& path, std::string_view text);

/// While it exists, no other program holds the lock of `path`, a file that is created for this purpose (mode 0600).
class FileLock {
 public:
  /// Waits for the current holder.
  static Result<FileLock> take(const std::string& path);
  /// nullopt if another holds it.
  static Result<std::optional<FileLock>> take_now(const std::string& path);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  static Result<FileLock> open(const std::string& path);
  int fd_;
};

/// While it exists, no other program that uses it changes the file at `path`: a change is based on what was read. Takes
/// the lock of `path`.lock; nullopt if `path` is empty, because without a file there is nothing to guard.
Result<std::optional<FileLock>> lock_beside(const std::string& path);

}  // namespace vramtrack
