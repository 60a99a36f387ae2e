// http_post: one POST to one receiver, within a time limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "act/outbox.hpp"
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

struct HttpTarget {
  Url url;
  std::string token;    ///< empty: no Authorization header
  std::string ca_file;  ///< empty: the system's certificates
  double timeout_s = 10;
};

/// Whether this build can post to `url`; an error says what to do instead.
Status can_post(const Url& url);

/// POSTs `body` as JSON, with `id` as its Idempotency-Key: the same at every attempt, so that a receiver can recognise
/// a repetition. Delivered: a 2xx response. Refused for good: 400, 413, 415, 422. Everything else is worth another
/// attempt: no connection, an invalid certificate, another status, a response that takes longer than timeout_s in
/// all. Redirects are not followed: they count as responses other than 2xx. At most 64 KiB of the response are
/// read. Blocks for up to timeout_s (plus the time to resolve the name); `stop` ends it early.
Outcome http_post(const HttpTarget& target, const std::string& id, const std::string& body,
                  const std::atomic<bool>& stop);

}  // namespace vramtrack::act
