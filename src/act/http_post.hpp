// http_post: one POST to one receiver, within a time limit.
#pragma once

#include <atomic>
#include <string>

#include "act/http_exchange.hpp"
#include "act/outbox.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

struct HttpTarget {
  Url url;
  std::string token;    ///< empty: no Authorization header
  std::string ca_file;  ///< empty: the system's certificates
  double timeout_s = 10;
};

/// Whether this build can post to `url`; the error states the alternative.
Status can_post(const Url& url);

/// POSTs `body` as JSON, with `id` as its Idempotency-Key: the same at every attempt, so that a receiver can recognise
/// a repetition. Delivered: a 2xx response. Refused permanently: 400, 413, 415, 422. Everything else is worth another
/// attempt: no connection, an invalid certificate, another status, a response that takes longer than timeout_s in all.
/// Redirects are not followed: they count as responses other than 2xx. Reads at most 64 KiB of the response. Blocks for
/// up to timeout_s; `stop` ends it early.
Outcome http_post(const HttpTarget& target, const std::string& id, const std::string& body,
                  const std::atomic<bool>& stop);

}  // namespace vramtrack::act
