// OutputFile: a file that a user names for a command's output (--output, --csv, --junit). It is not written through
// a symbolic link of another user (FileWay::foreign_link), nor into a file that another user has put into a sticky
// folder such as /tmp. Links of root and of this user are followed, and anything but a regular file (/dev/stdout, a
// pipe) is written as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.hpp"

namespace vramtrack {

/// Opens the file for writing, created with `mode` or emptied. The caller closes it. Errors name the path and a remedy.
Result<int> open_output(const std::string& path, unsigned mode);

class OutputFile {
 public:
  enum class Writes : std::uint8_t {
    at_once,  ///< for a file that others read while it grows
    whole,    ///< replaces the old file at finish(), which therefore stays if the new one cannot be written whole
  };
  static Result<OutputFile> open(const std::string& path, Writes writes = Writes::whole);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  /// Without finish(), a whole file is not created.
  ~OutputFile();

  /// False once writing has failed: stop, and let finish() report why. Output is buffered for a while.
  bool write(std::string_view text);
  Status finish();
  /// For another program that writes, in place of write().
  [[nodiscard]] int descriptor() const { return fd_; }

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  void flush();
  void close();

  std::string path_;
  int fd_ = -1;
  int folder_ = -1;    ///< the folder of the file that is replaced; -1: written at once
  std::string name_;   ///< the file's name in `folder_`
  std::string waits_;  ///< not yet written
  int error_ = 0;
};

/// Writes all of `text`, as a whole file.
Status write_output(const std::string& path, std::string_view text);

}  // namespace vramtrack
