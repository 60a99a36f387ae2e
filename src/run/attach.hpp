// Switches on PyTorch's own recorder in a running Python program for a while, through the attach socket that the
// package vramtrack opened in the program (python/vramtrack/attach_socket.py), or that is opened in it from outside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::run {

/// A process identified by pid and pinned, so that the pid keeps meaning the same process. Not thread-safe.
class AttachTarget {
 public:
  /// Errors: no such process, another user's, or one in another pid namespace; with advice for the next start.
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

/// The version of the process's interpreter, such as "3.11"; empty: unknown. Derived from the name of its program, or
/// of libpython among its mapped files.
std::string python_version_of(std::string_view program, const std::vector<std::string>& mapped_names);

/// The attach socket in the text of /proc/PID/net/unix; empty: none. `inodes`: those of the process's sockets. Pure.
std::string attach_socket_path(std::string_view net_unix, const std::vector<std::uint64_t>& inodes, std::uint32_t pid);

/// The client side of an attach session. During its lifetime, the program's recorder may be on; at its end, or if this
/// process is killed, the program switches it off.
class AttachSession {
 public:
  /// Connects to the attach socket, opening it first if necessary (attach_ways.hpp). Errors explain why it failed, and
  /// what to do at the next start.
  static Result<AttachSession> open(const AttachTarget& target, bool with_debugger);
  AttachSession(AttachSession&& other) noexcept;
  AttachSession& operator=(AttachSession&& other) noexcept;
  ~AttachSession();

  /// Sends a request to attach_socket.py; returns the answer without "ok". An Error contains the program's message.
  Result<std::string> ask(std::string_view request);
  /// Writes PyTorch's snapshot to a new file, which replaces any file at `path`.
  Status snapshot(const std::string& path);
  /// The objects that keep tensors alive, one line each; with `since`, those that have grown since the first call.
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
