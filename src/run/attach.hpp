// A running Python program: switches on PyTorch's own recorder in it for a while, through the attach socket that the
// package vramtrack opened in the program (python/vramtrack/attach_socket.py), or that is opened in it from outside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::run {

/// A process by pid, pinned so that it stays the same process. Not thread-safe.
class AttachTarget {
 public:
  /// Errors, with what to do at the next start: no such process, another user's, or in another pid namespace.
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

/// The version of the process's interpreter, such as "3.11"; empty: unknown. From the name of its program, or of
/// libpython among its mapped files.
std::string python_version_of(std::string_view program, const std::vector<std::string>& mapped_names);

/// The attach socket in the text of /proc/PID/net/unix; empty: none. `inodes`: of the process's own sockets. Pure.
std::string attach_socket_path(std::string_view net_unix, const std::vector<std::uint64_t>& inodes, std::uint32_t pid);

/// The client side of an attach session. During its lifetime the program's recorder may be on; at its end, and if this
/// process is killed, the program switches it off.
class AttachSession {
 public:
  /// Connects to the attach socket, opening it first if necessary (attach_ways.hpp). Errors say why it failed, and what
  /// to do at the next start.
  static Result<AttachSession> open(const AttachTarget& target, bool with_debugger);
  AttachSession(AttachSession&& other) noexcept;
  AttachSession& operator=(AttachSession&& other) noexcept;
  ~AttachSession();

  /// One request of attach_socket.py; returns the answer without "ok". An Error contains the program's own words.
  Result<std::string> ask(std::string_view request);
  /// Writes PyTorch's snapshot into a new file. Replaces what was at `path`.
  Status snapshot(const std::string& path);
  /// The objects that keep tensors alive, one line each; `since` the first call: what has grown.
  Result<std::vector<std::string>> kept(bool since);

 private:
  AttachSession() = default;
  Result<std::string> read_line();
  int socket_ = -1;
  std::string buffer_;
};

/// The Python source that opens the attach socket; cmake/embed_python.cmake writes it.
std::string_view attach_script();

}  // namespace vramtrack::run
