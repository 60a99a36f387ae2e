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

  /// For messages: "https://hooks.slack.com", without the path, for that is where such addresses keep their secret.
  [[nodiscard]] std::string origin() const;
};

/// http:// and https:// addresses. Errors name what was expected, and not the address's path. No user:password@: it
/// would show in the configuration; use a token file.
Result<Url> parse_url(std::string_view text);

struct HttpTarget {
  Url url;
  std::string token;    ///< empty: no Authorization header
  std::string ca_file;  ///< empty: the system's certificates
  double timeout_s = 10;
};

/// Whether this build can post to `url`; an error says what to do instead.
Status can_post(const Url& url);

/// POSTs `body` as JSON, with `id` as its Idempotency-Key: the same at every attempt, so that a receiver can tell a
/// repetition. Delivered: an answer 2xx. Refused for good: 400, 413, 415, 422. All else is worth another
/// attempt: no connection, a certificate that does not hold, another status, an answer that takes longer than
/// timeout_s in all. Redirects are not followed: they are answers that are not 2xx. At most 64 KiB of the answer are
/// read. Blocks up to timeout_s (and as long as the resolver takes for the name); `stop` ends it early.
Outcome http_post(const HttpTarget& target, const std::string& id, const std::string& body,
                  const std::atomic<bool>& stop);

}  // namespace vramtrack::act
