// What an HTTP server sends to browsers: the dashboard's files, and the permissions of its pages.
#pragma once

#include <optional>

#include "agent/server/http.hpp"

namespace vramtrack::agent {

/// The dashboard's file at the path of `request`; nullopt if there is none.
std::optional<Response> asset_response(const Request& request);

/// Adds the headers of every answer: no other site's page may show, embed or read it, scripts come only from this
/// server, and nothing is cached unless the response allows it.
void add_security_headers(Response& response);

}  // namespace vramtrack::agent
