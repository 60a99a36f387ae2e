// Http: the agent's HTTP server on sockets of its own: bounded in requests, time, connections and memory, whatever
// clients do. Knows nothing of GPUs: a Site answers.
//
//   accept thread ──fd──> pool: a thread a connection, bounded ──> Site::admit ──> (body) ──> Site::respond
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

#include "core/result.hpp"

namespace vramtrack::agent {

struct Request {
  std::string method;                             ///< GET, HEAD, POST or DELETE
  std::string path;                               ///< decoded, at most 256 bytes
  std::multimap<std::string, std::string> query;  ///< decoded
  std::string host;                               ///< the Host header; empty when there was none
  std::string origin;                             ///< the Origin header; empty when there was none
  std::string authorization;
  std::string content_type;
  std::string if_none_match;
  std::string body;
  bool over_unix = false;
  /// The user at the other end (see peer.hpp). May cost a read of /proc/net/tcp; asked once a connection.
  std::function<std::optional<std::uint32_t>()> uid;
};

/// Writes a piece of a stream; false: the client has gone or took too long.
using Write = std::function<bool(std::string_view piece)>;

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::shared_ptr<const std::string> body;  ///< shared: many clients get the same bytes
  std::vector<std::pair<std::string, std::string>> headers;
  /// Set: the body is a stream. Called again and again until it returns false or the server stops; waits at most a
  /// second or so each time, so that stopping is quick.
  std::function<bool(const Write&)> stream;
};

Response text_response(int status, std::string content_type, std::string body);

struct Site {
  /// Called with the head of every request before its body is read: a Response refuses it.
  std::function<std::optional<Response>(const Request&)> admit;
  std::function<Response(const Request&)> respond;
};

struct HttpConfig {
  std::string listen;                 ///< "127.0.0.1:9474", "[::1]:0"; empty: no TCP
  std::string socket;                 ///< path of a Unix socket; empty: none
  bool socket_for_everybody = false;  ///< mode 0666: rights follow from who connects; else 0600
  std::size_t most_tcp_connections = 128;
  std::size_t most_unix_connections = 32;  ///< their own: what clogs TCP does not keep local tools out
};

class HttpServer {
 public:
  // Limits that no client needs to exceed.
  static constexpr std::size_t kMostRequestBytes = 80 * 1024;  ///< head and body
  static constexpr std::size_t kMostBodyBytes = 64 * 1024;
  static constexpr int kRequestSeconds = 5;  ///< from a request's first byte to its last
  static constexpr int kIdleSeconds = 5;     ///< between two requests of a connection
  static constexpr int kWriteSeconds = 10;   ///< for one piece of an answer

  /// Binds and answers from here on, in threads of its own; `site` must be callable from many at once. Errors: an
  /// address that is taken or not this machine's, a socket where another agent answers, a path that is no socket.
  static Result<std::unique_ptr<HttpServer>> start(const HttpConfig& config, Site site);
  /// Ends all connections and removes the socket. Takes at most about a second.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The address in use: where the port was 0, the one that was found. Empty without TCP.
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
