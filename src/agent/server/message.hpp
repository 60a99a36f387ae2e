// Message: the heads of requests and responses, which Boost.Beast parses and names. The one place that knows it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "agent/server/http.hpp"

namespace vramtrack::agent {

struct RequestHead {
  Request request;  ///< without its body and its client
  std::size_t body_bytes = 0;
  bool keeps_alive = false;  ///< another request may follow on the connection
};

/// A request's head, up to and with its empty line. Error: the response to one that is malformed or that no client of
/// ours needs: another method, a transfer coding, a body that is not JSON or has more than `most_body_bytes`. Pure.
tl::expected<RequestHead, Response> parse_head(std::string_view head, std::size_t most_body_bytes);

/// What comes before a response's body, with the empty line. `is_last`: the connection is closed after it. Pure.
std::string response_head(const Response& response, bool is_last);

/// The bytes of a whole response without a stream, after which the connection is closed.
std::string closing_answer(const Response& response);

}  // namespace vramtrack::agent
