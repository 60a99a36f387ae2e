// Message: parses and writes the heads of requests and responses. Only this file's .cpp uses Boost.Beast.
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
  bool keeps_alive = false;  ///< whether another request may follow on the connection
};

/// Parses a request's head, including its empty line. The error is the response to a head that is malformed or that our
/// clients never send: another method, a transfer coding, a body that is not JSON or exceeds `most_body_bytes`. Pure.
tl::expected<RequestHead, Response> parse_head(std::string_view head, std::size_t most_body_bytes);

/// The text before a response's body, including the empty line. `is_last`: the connection is closed after it. Pure.
std::string response_head(const Response& response, bool is_last);

/// The bytes of a whole response without a stream, after which the connection is closed.
std::string closing_answer(const Response& response);

}  // namespace vramtrack::agent
