// HttpServer: requests to a Prometheus-compatible server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "act/http_exchange.hpp"
#include "core/result.hpp"

namespace vramtrack::fleet {

struct ServerAddress {
  act::Url url;  ///< its path precedes /api/v1, without a trailing slash: "/prometheus"; often empty
  std::string bearer_token;
  std::string user_and_password;  ///< "user:password"
  std::vector<std::pair<std::string, std::string>> headers;
  std::string ca_file;             ///< empty: the system's certificates
  double silence_timeout_s = 120;  ///< a request fails after this long without a byte
  double timeout_s = 300;          ///< from the connection to the end of the answer

  /// "http://127.0.0.1:9090/prometheus", for messages: contains no secrets
  [[nodiscard]] std::string origin() const { return url.origin() + url.path; }
};

/// Why a request returned no usable answer.
struct HttpFailure {
  enum class Kind : std::uint8_t {
    passing,    ///< no connection, 5xx, 429, an incomplete answer: worth another attempt
    too_much,   ///< the server's limits, or ours, forbid so large an answer: request less
    cancelled,  ///< the process was asked to end
    permanent,  ///< anything else
  };
  Kind kind = Kind::permanent;
  std::string why;
  bool is_away = false;  ///< no status line has arrived: another kind of request would get none, either
};

struct HttpRequest {
  std::string path;  ///< appended to the address's path: "/api/v1/read"
  std::string body;  ///< empty: a GET
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;
  std::size_t most_answer_bytes = std::size_t{1} << 30U;  ///< of an answer that is read as it arrives
};

/// Receives the bytes of an answer as they arrive, with its Content-Type; an Error ends the request and is its failure.
using BodySink = std::function<Status(std::string_view bytes, const std::string& content_type)>;

/// Sends one request and passes the body of a 2xx answer to `body`. Blocks; an interrupt of the process ends it. May be
/// called by several threads at once: each call has its own connection.
tl::expected<void, HttpFailure> send_request(const ServerAddress& server, const HttpRequest& request,
                                             const BodySink& body);

}  // namespace vramtrack::fleet
