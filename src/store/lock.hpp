// The right to write one store, held by at most one process.
#pragma once

#include <string>

#include "core/result.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// flock on "<store>.lock". The kernel releases it when the holder ends, however it ends; the file itself stays,
/// because removing it could let two holders in. Its text names the holder, for messages.
class WriterLock {
 public:
  /// Takes the lock without waiting. Errors: it is held (names pid, since when, command), or the lock file cannot be
  /// created.
  static Result<WriterLock> take(const std::string& store_path, Timestamp now);
  WriterLock(WriterLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  WriterLock& operator=(WriterLock&& other) noexcept;
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;
  ~WriterLock();

 private:
  explicit WriterLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace vramtrack
