// http_exchange: one request and its answer, over HTTP or HTTPS. All requests of this program, through a network or a
// Unix socket, use this function. So each whole answer has one deadline and a size limit, no request continues to wait
// when the process is asked to end, and a failure is described in the same words everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::act {

struct Url {
  bool https = false;
  std::string host;  ///< without the brackets of an IPv6 address
  std::uint16_t port = 0;
  std::string path;  ///< with the query; at least "/"

  /// For messages: "https://hooks.slack.com", without the path, because that contains the secret of such addresses.
  [[nodiscard]] std::string origin() const;
};

/// Parses http:// and https:// addresses. Errors state what was expected, but do not quote the address's path.
/// user:password@ is rejected, because it would appear in the configuration; use a token file.
Result<Url> parse_url(std::string_view text);

struct HttpCall {
  Url url;
  /// The path of a Unix socket on which the server listens; empty: connect to the host of the URL, which is otherwise
  /// only sent to the server.
  std::string unix_socket;
  std::string method = "GET";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string user_and_password;  ///< "user:password" for basic authentication; empty: none
  std::string ca_file;            ///< empty: the system's certificates
  double timeout_s = 10;          ///< from the resolution of the name to the last byte of the answer
  double silence_timeout_s = 0;   ///< the longest time without a byte of the answer; 0: no such limit
  std::size_t most_answer_bytes = std::size_t{64} << 20U;
  /// Checked every 20 ms by another thread. Empty: SIGINT and SIGTERM, if they ask to end (host/interrupt.hpp).
  std::function<bool()> is_cancelled;
  /// A request that changes something on the server continues for this long after cancellation, so that its result may
  /// still arrive.
  double grace_s = 0;
};

struct HttpHead {
  int status = 0;  ///< 0: no status line has arrived
  std::string content_type;
  double retry_after_s = 0;  ///< 0: not given, or given as a date
};

enum class HttpEnd : std::uint8_t {
  complete,       ///< a whole answer, with any status
  no_connection,  ///< no such host or socket, or nothing listens there
  broken_off,     ///< the connection was closed before the answer was complete, or was silent for too long
  tls_failed,
  not_trusted,  ///< the server's certificate
  late,         ///< timeout_s has passed
  too_large,    ///< more than most_answer_bytes
  cancelled,
  refused,     ///< the sink accepted no more
  impossible,  ///< in this build, or with these certificate files
};

struct HttpAnswer {
  HttpEnd end = HttpEnd::impossible;
  HttpHead head;
  std::string why;   ///< empty if complete; otherwise the reason and a remedy, without the address and without secrets
  std::string body;  ///< empty if there was a sink
};

/// Receives the bytes of a body as they arrive; false ends the exchange.
using HttpSink = std::function<bool(std::string_view bytes, const HttpHead& head)>;

/// Carries out one exchange. `ca_words`: what to do about an untrusted certificate ("set notify.ca-file"). Redirects
/// are not followed; a compressed answer is not requested. Without a `sink`, the body is in the answer. Blocks; calls
/// are independent of each other. Costs a connection and a thread, and for a host name a second thread: its resolution
/// cannot be interrupted and is left behind. If the queue of a Unix socket is full, waits for room. Only the time
/// limits the size of the headers: the kernel does not count their bytes. REQUIRES: SIGPIPE is ignored, as in
/// cli/console, because the library writes to closed sockets.
HttpAnswer http_exchange(const HttpCall& call, std::string_view ca_words, const HttpSink& sink = {});

/// For a complete answer with a failure status: "https://host answered with status 503: TEXT". `text`: the server's
/// message, on one line; may be empty.
std::string status_words(std::string_view server, int status, std::string_view text = {});

/// Whether this build supports https.
bool has_https();

}  // namespace vramtrack::act
