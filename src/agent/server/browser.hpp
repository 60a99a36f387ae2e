// What an HTTP server sends to browsers: the dashboard's files, and what its pages may do.
#pragma once

#include <optional>

#include "agent/server/http.hpp"

namespace vramtrack::agent {

/// The file of the dashboard that `request` asks for; nullopt: there is none at this path.
std::optional<Response> asset_response(const Request& request);

/// Adds the headers that every answer has: no page of others may show, embed or read it, scripts come from here alone,
/// and nothing is cached unless the response says so itself.
void add_security_headers(Response& response);

}  // namespace vramtrack::agent
