// http_exchange: one request and its answer, over HTTP or HTTPS. Everything here that asks a server, through a network
// or a Unix socket, does it through this function: so each whole answer has one deadline and a limit of its size,
// nothing waits on when the process is asked to end, and a failure is described in the same words everywhere.
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
  std::string path;  ///< with the query; "/" at least

  /// For messages: "https://hooks.slack.com", without the path, because that contains the secret of such addresses.
  [[nodiscard]] std::string origin() const;
};

/// http:// and https:// addresses. Errors say what was expected, but do not quote the address's path. user:password@
/// is refused, because it would show in the configuration; use a token file.
Result<Url> parse_url(std::string_view text);

struct HttpCall {
  Url url;
  /// The path of a Unix socket on which the server listens; empty: at the host of the URL, which is only named to the
  /// server otherwise.
  std::string unix_socket;
  std::string method = "GET";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string user_and_password;  ///< "user:password" for basic authentication; empty: none
  std::string ca_file;            ///< empty: the system's certificates
  double timeout_s = 10;          ///< from the name's resolution to the last byte of the answer
  double silence_timeout_s = 0;   ///< without a byte of the answer; 0: no such limit
  std::size_t most_answer_bytes = std::size_t{64} << 20U;
  /// Looked at every 20 ms by another thread. Empty: SIGINT and SIGTERM, where they are a request (host/interrupt.hpp).
  std::function<bool()> is_cancelled;
  /// A request that changes something on the server continues for this long after it was cancelled, so that it may be
  /// known whether it was done.
  double grace_s = 0;
};

struct HttpHead {
  int status = 0;  ///< 0: no status line has come
  std::string content_type;
  double retry_after_s = 0;  ///< 0: not given, or as a date
};

enum class HttpEnd : std::uint8_t {
  complete,       ///< a whole answer, of whatever status
  no_connection,  ///< no such host or socket, or nobody answers there
  broken_off,     ///< the connection was closed before the answer was complete, or was silent for too long
  tls_failed,
  not_trusted,  ///< its certificate
  late,         ///< timeout_s is over
  too_large,    ///< more than most_answer_bytes
  cancelled,
  refused,     ///< the sink took no more
  impossible,  ///< this build, or the files of the certificates
};

struct HttpAnswer {
  HttpEnd end = HttpEnd::impossible;
  HttpHead head;
  std::string why;   ///< unless complete; in words, with what to do: without the address and without secrets
  std::string body;  ///< without a sink
};

/// Receives the bytes of a body as they come; false ends the exchange.
using HttpSink = std::function<bool(std::string_view bytes, const HttpHead& head)>;

/// `ca_words`: what the user does about a certificate that is not trusted ("set notify.ca-file"). Redirects
/// are not followed; a compressed answer is not asked for. Without a `sink`, the body is in the answer. Blocks; several
/// calls at once are independent. Costs a connection and a thread, and for a name a second one: its resolution cannot
/// be interrupted and is left behind. While the queue of a Unix socket is full, waits for room. The size of its headers
/// is limited by the time alone: the kernel does not count their bytes. REQUIRES: SIGPIPE is ignored, as cli/console
/// does: the library writes to sockets that are shut down.
HttpAnswer http_exchange(const HttpCall& call, std::string_view ca_words, const HttpSink& sink = {});

/// For a complete answer whose status is a failure: "https://host answered with status 503: TEXT". `text`: the server's
/// words, in one line; may be empty.
std::string status_words(std::string_view server, int status, std::string_view text = {});

/// Whether this build can speak https.
bool has_https();

}  // namespace vramtrack::act
