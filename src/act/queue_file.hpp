// QueueFile: one small text, replaced as a whole; after a crash it is the old one or the new one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/regular_file.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// Held by at most one at a time, across all programs (flock on "<path>.lock", released by the kernel however the
/// holder ends). Mode 0600, because it contains command lines. Not thread-safe.
class QueueFile {
 public:
  /// Creates the folder (0700) if it is missing. Errors: held by another, no permission to write.
  static Result<QueueFile> open(const std::string& path);
  /// nullopt: there is none yet. At most 4 MiB: a longer one is not ours.
  [[nodiscard]] Result<std::optional<std::string>> read() const;
  /// Writes a file next to it, syncs it, then renames it. Takes as long as the disk needs to sync.
  Status write(std::string_view text) const;
  /// Renames the existing file to "<path>.damaged"; returns that name.
  [[nodiscard]] Result<std::string> put_aside() const;

 private:
  QueueFile(std::string path, FileLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  FileLock lock_;
};

}  // namespace vramtrack::act
