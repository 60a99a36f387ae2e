// ClientStream: one client's bytes, within bounds of time and size. For http.cpp and its tests.
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
  /// `fd` stays the caller's. `begun`: what has been read of it already.
  explicit ClientStream(int fd, std::string begun = {}) : fd_(fd), buffer_(std::move(begun)) {}
  /// With TLS from the first byte on.
  ClientStream(int fd, std::unique_ptr<TlsSession> tls) : fd_(fd), tls_(std::move(tls)) {}

  enum class Head { complete, none, too_slow, too_large };
  /// Waits for the head of the next request (`idle_s`, then `request_s` for all of the request), which `head` is then,
  /// with its empty line. none: the client has gone, or asks nothing more.
  Head next_head(double idle_s, double request_s, std::size_t most_bytes, std::string& head);

  /// The request's body, of this size; nullopt: it did not come in time.
  std::optional<std::string> body(std::size_t bytes);
  /// All of it within `within_s`, or false.
  bool write(std::string_view bytes, double within_s);

  /// Sends TLS's close notification. Does not wait.
  void send_last_chunk();
  /// Ends the connection so that an answer already written arrives although more was sent than read.
  void linger();

 private:
  using Clock = std::chrono::steady_clock;
  /// Waits for `events` until `deadline`; false: time is up or the socket is broken.
  [[nodiscard]] bool wait(short events, Clock::time_point deadline) const;
  /// Appends what is there to the buffer; false: end, or an error.
  bool fill(std::size_t most);
  /// What the buffer begins with.
  std::string take(std::size_t bytes);

  int fd_;
  std::unique_ptr<TlsSession> tls_;  ///< null: plain
  std::string buffer_;               ///< read, and not taken yet
  Clock::time_point deadline_{};
};

}  // namespace vramtrack::agent
