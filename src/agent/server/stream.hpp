// ClientStream: one client's bytes, within bounds of time and size. For http.cpp and its tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/server/tls.hpp"

namespace vramtrack::agent {

/// Drops the header lines that the library would act on and we do not want it to: Range (answers are small, its parser
/// is not robust), Accept-Encoding (compressing costs more than loopback does), Expect. `head` is a request's head with
/// the empty line at its end. Pure.
std::string without_unwanted_headers(std::string_view head);

/// Reads and writes one connected, non-blocking socket. One thread, except for shutdown() of the descriptor by others.
class ClientStream {
 public:
  /// `fd` stays the caller's. `begun`: what has been read of it already.
  explicit ClientStream(int fd, std::string begun = {}) : fd_(fd), buffer_(std::move(begun)) {}
  /// With TLS from the first byte on.
  ClientStream(int fd, std::unique_ptr<TlsSession> tls) : fd_(fd), tls_(std::move(tls)) {}

  enum class Head { complete, none, too_slow, too_large };
  /// Waits for the head of the next request (`idle_s`, then `request_s` for all of it) and keeps it for read(). none:
  /// the client has gone, or asks nothing more.
  Head next_head(double idle_s, double request_s, std::size_t most_bytes, std::size_t most_body_bytes);

  /// What the request still has, at most `size` bytes; 0 at its end, negative when time or size is exceeded.
  long read(char* into, std::size_t size);
  /// All of it within `within_s`, or false.
  bool write(std::string_view bytes, double within_s);
  [[nodiscard]] bool has_buffered() const { return position_ < buffer_.size(); }
  [[nodiscard]] int fd() const { return fd_; }

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

  int fd_;
  std::unique_ptr<TlsSession> tls_;  ///< null: plain
  std::string buffer_;
  std::size_t position_ = 0;
  std::size_t budget_ = 0;  ///< bytes the request may still bring
  Clock::time_point deadline_{};
};

}  // namespace vramtrack::agent
