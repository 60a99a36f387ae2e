// Tls: the server side of TLS on connected sockets.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "core/result.hpp"

// Declares OpenSSL's type here because its headers are slow to compile.
struct ssl_ctx_st;
struct ssl_st;

namespace vramtrack::agent {

/// The files of a certificate, and the names of the settings or options that set them, for errors.
struct TlsFiles {
  std::string certificate;  ///< PEM: the server's certificate, then its chain
  std::string key;          ///< PEM; must not be readable by other users
  std::string certificate_name = "agent.tls-certificate";
  std::string key_name = "agent.tls-key";
};

/// A loaded certificate and its key. Immutable; any thread.
class TlsCertificate {
 public:
  /// Errors name the file and explain what to do. Never prompts at a terminal.
  static Result<std::shared_ptr<const TlsCertificate>> load(const TlsFiles& files);
  ~TlsCertificate();
  TlsCertificate(const TlsCertificate&) = delete;
  TlsCertificate& operator=(const TlsCertificate&) = delete;

  /// A warning for the user: the certificate has expired or is not valid yet. Empty: none.
  [[nodiscard]] const std::string& warning() const { return warning_; }

 private:
  friend class TlsSession;
  TlsCertificate() = default;
  ssl_ctx_st* context_ = nullptr;
  std::string warning_;
};

/// One connection, used by one thread.
class TlsSession {
 public:
  /// `fd` is connected and non-blocking; the caller keeps ownership.
  TlsSession(std::shared_ptr<const TlsCertificate> certificate, int fd);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Like recv() and send() on a non-blocking socket: bytes; 0 at the end; -1 and errno EAGAIN or EIO. On EAGAIN,
  /// `wants()` returns what to poll() for. Whichever is called first performs the handshake.
  ssize_t read(char* into, std::size_t size);
  ssize_t write(const char* bytes, std::size_t size);
  [[nodiscard]] short wants() const { return wants_; }
  /// Whether read() can return bytes without reading from the socket.
  [[nodiscard]] bool has_buffered() const;
  /// Sends the close notification. Does not wait.
  void close();

 private:
  ssize_t result(int returned);
  std::shared_ptr<const TlsCertificate> certificate_;
  ssl_st* ssl_ = nullptr;
  short wants_ = 0;
  bool broken_ = false;
};

}  // namespace vramtrack::agent
