// ClientStream: reads and writes one client's bytes within limits on time and size. For http.cpp and its tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/server/tls.hpp"

namespace vramtrack::agent {

/// Reads and writes one connected, non-blocking socket. One thread, except for shutdown() of the descriptor by others.
class ClientStream {
 public:
  /// The caller keeps ownership of `fd`. `begun`: bytes already read from it.
  explicit ClientStream(int fd, std::string begun = {}) : fd_(fd), buffer_(std::move(begun)) {}
  /// The same with TLS from the first byte on.
  ClientStream(int fd, std::unique_ptr<TlsSession> tls) : fd_(fd), tls_(std::move(tls)) {}

  enum class Head { complete, none, too_slow, too_large };
  /// Waits for the head of the next request (`idle_s`, then `request_s` for the whole request) and stores it in `head`,
  /// including its empty line. none: the client has disconnected or requests nothing more.
  Head next_head(double idle_s, double request_s, std::size_t most_bytes, std::string& head);

  /// The request's body, of this size; nullopt: it did not arrive in time.
  std::optional<std::string> body(std::size_t bytes);
  /// Writes all of it; false if that takes longer than `within_s`.
  bool write(std::string_view bytes, double within_s);

  /// Sends TLS's close notification. Does not wait.
  void send_last_chunk();
  /// Ends the connection so that a written answer arrives even if the client sent more than was read.
  void linger();

 private:
  using Clock = std::chrono::steady_clock;
  /// Waits for `events` until `deadline`; false if time is up or the socket is broken.
  [[nodiscard]] bool wait(short events, Clock::time_point deadline) const;
  /// Appends available bytes to the buffer; false at the end or on an error.
  bool fill(std::size_t most);
  /// Removes this many bytes from the beginning of the buffer and returns them.
  std::string take(std::size_t bytes);

  int fd_;
  std::unique_ptr<TlsSession> tls_;  ///< null: plain
  std::string buffer_;               ///< read but not taken yet
  Clock::time_point deadline_{};
};

}  // namespace vramtrack::agent
