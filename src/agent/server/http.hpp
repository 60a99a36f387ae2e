// Http: the agent's own HTTP server: bounded in requests, time, connections and memory, whatever clients do. It knows
// nothing about GPUs: a Site answers.
//
//   accept thread ──fd──> FairQuota ──> pool: a thread a connection, bounded ──> Site::admit ──> (body) ──>
//   Site::respond
//                           │
//                           └──no place──> WaitingRoom: /healthz is answered, /metrics gets a place, 429 or 503
//
// docs/design/0010-server-limits.md explains each limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/server/peer.hpp"
#include "agent/server/tls.hpp"
#include "core/result.hpp"

namespace vramtrack::agent {

struct Request {
  std::string method;                             ///< GET, HEAD, POST or DELETE
  std::string path;                               ///< decoded, at most 256 bytes
  std::multimap<std::string, std::string> query;  ///< decoded
  std::string host;                               ///< the Host header; empty if there was none
  std::string origin;                             ///< the Origin header; empty if there was none
  std::string authorization;
  std::string content_type;
  std::string if_none_match;
  std::string body;
  bool over_unix = false;
  std::optional<std::uint32_t> uid;            ///< the user at the other end (see peer.hpp)
  Peer peer;                                   ///< the client that the connection counts for
  std::optional<std::string> pid_namespace{};  ///< the client's, if it differs from ours (see peer.hpp)
};

/// Writes a piece of a stream; false if the client has disconnected or taken too long.
using Write = std::function<bool(std::string_view piece)>;

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::shared_ptr<const std::string> body;  ///< shared, because many clients get the same bytes
  std::vector<std::pair<std::string, std::string>> headers;
  /// If set, the body is a stream. Called repeatedly until it returns false or the server stops; each call waits at
  /// most about a second, so that stopping is quick.
  std::function<bool(const Write&)> stream;
};

Response text_response(int status, std::string content_type, std::string body);

/// {"error": {"code": ..., "message": ...}}
Response error(int status, std::string_view code, std::string_view message);

/// How long our clients should wait before they retry: places become free within about a second.
inline constexpr int kRetryAfterSeconds = 1;
/// An error with Retry-After and status 429 or 503.
Response refused(int status, std::string_view code, std::string_view message);

struct Site {
  /// Called with the head of every request before its body is read; returning a Response refuses it.
  std::function<std::optional<Response>(const Request&)> admit;
  std::function<Response(const Request&)> respond;
};

struct HttpConfig {
  std::string listen;                 ///< "127.0.0.1:9474", "[::1]:0"; empty: no TCP
  std::string socket;                 ///< path of a Unix socket; empty: none
  bool socket_for_everybody = false;  ///< mode 0666 (rights depend on who connects), else 0600
  std::size_t most_tcp_connections = 128;
  std::size_t most_unix_connections = 32;     ///< separate, so that full TCP does not lock out local tools
  std::shared_ptr<const TlsCertificate> tls;  ///< for TCP; null: plain HTTP
  std::size_t most_body_bytes = 64 * 1024;    ///< per request
  std::function<Client(int fd)> client_of;    ///< who has connected; empty: as the kernel reports. For tests
};

class HttpServer {
 public:
  // Limits that no client needs to exceed.
  static constexpr std::size_t kMostHeadBytes = 16 * 1024;  ///< HttpConfig::most_body_bytes applies to the rest
  static constexpr int kRequestSeconds = 5;                 ///< from a request's first byte to its last
  static constexpr int kIdleSeconds = 5;                    ///< between two requests on a connection
  static constexpr int kWriteSeconds = 10;                  ///< for one piece of an answer
  /// Extra places per listener for root and the agent's own user: enough for a few tools and scrapes at once.
  static constexpr std::size_t kReservedConnections = 8;
  /// Further places for clients of /metrics that found none. Prometheus comes with one or two replicas.
  static constexpr std::size_t kScrapeConnections = 4;
  /// Per peer, except root and the owner: a dashboard sends about a dozen requests when it is opened, then one per
  /// second. At 100 per second, the agent uses a few per cent of a processor.
  static constexpr double kRequestsPerSecond = 100;
  static constexpr double kRequestsAtOnce = 200;
  /// What the kernel buffers of an unread answer. Without a limit, it grows to megabytes per connection.
  static constexpr int kSendBufferBytes = 256 * 1024;

  /// Binds and starts to answer, in its own threads; `site` must be callable from many at once. Errors: an address that
  /// is taken or not this machine's, a socket on which another agent answers, a path that is not a socket.
  static Result<std::unique_ptr<HttpServer>> start(const HttpConfig& config, const Site& site);
  /// Ends all connections and removes the socket. Takes at most about a second.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Applies from the next connection on; null: plain HTTP.
  void use(std::shared_ptr<const TlsCertificate> tls);

  /// The address in use; if the port was 0, with the port that was assigned. Empty without TCP.
  [[nodiscard]] const std::string& address() const;
  [[nodiscard]] std::uint64_t requests() const;
  [[nodiscard]] std::uint64_t refused_connections() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  struct Core;
  explicit HttpServer(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack::agent
