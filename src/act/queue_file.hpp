// QueueFile: one small text, replaced as a whole; after a crash, the file holds either the old or the new text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/regular_file.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// At most one program at a time has it open (flock on "<path>.lock", which the kernel releases however the program
/// ends). Mode 0600, because it contains command lines. Not thread-safe.
class QueueFile {
 public:
  /// Creates the folder (0700) if it is missing. Errors: another program has it open, no permission to write.
  static Result<QueueFile> open(const std::string& path);
  /// nullopt: there is no file yet. At most 4 MiB: a longer file is not ours.
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
