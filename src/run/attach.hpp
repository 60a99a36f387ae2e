// A Python program that runs already: PyTorch's own recorder in it, switched on for a while, through the door that the
// package vramtrack opened in the program (python/vramtrack/door.py), or that is opened in it from outside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::run {

/// The process with a pid, held so that it stays the same process. Not thread-safe.
class AttachTarget {
 public:
  /// Errors, with what to do at the next start: not there, not this user's, in another pid namespace.
  static Result<AttachTarget> open(std::uint32_t pid);
  AttachTarget(AttachTarget&& other) noexcept;
  AttachTarget& operator=(AttachTarget&& other) noexcept;
  ~AttachTarget();

  [[nodiscard]] std::uint32_t pid() const { return pid_; }
  [[nodiscard]] bool has_ended() const;

 private:
  AttachTarget() = default;
  std::uint32_t pid_ = 0;
  int pidfd_ = -1;
};

/// "3.11" of the interpreter that runs the process; empty: none that can be told. From the name of its program, or of
/// libpython among its mapped files.
std::string python_version_of(std::string_view program, const std::vector<std::string>& mapped_names);

/// The door's socket among the text of /proc/PID/net/unix; empty: none. `inodes`: of the process's own sockets. Pure.
std::string door_path(std::string_view net_unix, const std::vector<std::uint64_t>& inodes, std::uint32_t pid);

/// The program's side of a session. While one lives, the program's recorder may be on; at its end, and where this
/// process is killed, the program switches it off.
class AttachSession {
 public:
  /// Through the door that is open, or that can be opened (attach_ways.hpp). Errors say why not, and what to do at the
  /// next start.
  static Result<AttachSession> open(const AttachTarget& target, bool with_debugger);
  AttachSession(AttachSession&& other) noexcept;
  AttachSession& operator=(AttachSession&& other) noexcept;
  ~AttachSession();

  /// One request of door.py; the answer without "ok". An Error is the program's own words.
  Result<std::string> ask(std::string_view request);
  /// PyTorch's snapshot into a new file. What there was at `path` is replaced.
  Status snapshot(const std::string& path);
  /// What keeps tensors, a line each; `since` the first call: what has grown.
  Result<std::vector<std::string>> kept(bool since);

 private:
  AttachSession() = default;
  Result<std::string> read_line();
  int socket_ = -1;
  std::string buffer_;
};

/// The Python source that opens the door; cmake/embed_python.cmake writes it.
std::string_view attach_script();

}  // namespace vramtrack::run
