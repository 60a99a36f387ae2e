// Tls: the server's side of TLS on sockets that are already connected.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "core/result.hpp"

// OpenSSL's type, whose headers are slow to compile.
struct ssl_ctx_st;
struct ssl_st;

namespace vramtrack::agent {

/// The files of a certificate, and the names of the settings or options that give them, for errors.
struct TlsFiles {
  std::string certificate;  ///< PEM: the server's certificate, then those of its chain
  std::string key;          ///< PEM; other users cannot read it
  std::string certificate_name = "agent.tls-certificate";
  std::string key_name = "agent.tls-key";
};

/// A certificate and its key, loaded. Any thread; nobody changes it.
class TlsCertificate {
 public:
  /// Errors name the file and say what to do. Nothing is asked at a terminal.
  static Result<std::shared_ptr<const TlsCertificate>> load(const TlsFiles& files);
  ~TlsCertificate();
  TlsCertificate(const TlsCertificate&) = delete;
  TlsCertificate& operator=(const TlsCertificate&) = delete;

  /// What a person should know: that it has expired or is not valid yet. Empty: nothing.
  [[nodiscard]] const std::string& warning() const { return warning_; }

 private:
  friend class TlsSession;
  TlsCertificate() = default;
  ssl_ctx_st* context_ = nullptr;
  std::string warning_;
};

/// One connection. One thread.
class TlsSession {
 public:
  /// `fd` is connected, does not block, and stays the caller's.
  TlsSession(std::shared_ptr<const TlsCertificate> certificate, int fd);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// As recv() and send() of a socket that does not block: bytes; 0 at the end; -1 and errno EAGAIN or EIO. Where it is
  /// EAGAIN, `wants()` says what to poll() for. The handshake is done by whichever is called first.
  ssize_t read(char* into, std::size_t size);
  ssize_t write(const char* bytes, std::size_t size);
  [[nodiscard]] short wants() const { return wants_; }
  /// Bytes that read() has without the socket.
  [[nodiscard]] bool has_buffered() const;
  /// Tells the client that nothing follows. Does not wait.
  void close();

 private:
  ssize_t result(int returned);
  std::shared_ptr<const TlsCertificate> certificate_;
  ssl_st* ssl_ = nullptr;
  short wants_ = 0;
  bool broken_ = false;
};

}  // namespace vramtrack::agent
