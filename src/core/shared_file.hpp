// SharedFile: a small file that several programs read, and that each of them replaces as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "core/result.hpp"

namespace vramtrack {

/// Not thread-safe: its owner locks.
class SharedFile {
 public:
  /// Takes in the text of the file; null if the file is gone.
  using Take = std::function<Status(const std::string* text)>;

  /// An empty `path`: nothing is on disk.
  SharedFile(std::string path, std::size_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_in_memory() const { return path_.empty(); }
  /// Calls `take` if the file's time or inode shows that it has changed since it was taken in. Otherwise costs one
  /// lstat(). Errors: it cannot be read, or those of `take`; the file then counts as not taken in.
  Status refresh(const Take& take);
  /// Replaces it, atomically and synced, and takes it in. REQUIRES: !is_in_memory(). Errors: as above, or it cannot be
  /// written.
  Status replace(const std::string& text, const Take& take);
  /// Increases with every change, by whichever program.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  /// To be called when the contents in memory have changed.
  void changed() { ++revision_; }

 private:
  std::string path_;
  std::size_t most_bytes_;
  std::uint64_t revision_ = 0;
  std::int64_t seen_ns_ = -1;  ///< change time of the file that was taken in; negative if none was
  std::uint64_t seen_inode_ = 0;
};

}  // namespace vramtrack
