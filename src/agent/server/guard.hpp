// Guard: decides which requests are answered at all. Pure except for read_token.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack::agent {

/// Whether a Host header names this agent: an address, localhost, `own_host` or one of `allowed`, each with any port. A
/// foreign name that resolves to this machine (DNS rebinding) is rejected.
bool host_allowed(std::string_view host, std::string_view own_host, std::span<const std::string> allowed);

/// Whether a page from `origin` ("http://127.0.0.1:9474") is the agent's own, addressed as `host`.
bool origin_is_host(std::string_view origin, std::string_view host);

/// Whether `authorization` is "Bearer " and the token. The time does not depend on where they differ.
bool bears_token(std::string_view authorization, std::string_view token);

/// The token in `path`: its first line, 16 to 512 visible characters. Errors: it is missing, another user's or readable
/// by others; each explains what to do. `setting` names the path.
Result<std::string> read_token(const std::string& path, const std::string& setting = "agent.token-file");

}  // namespace vramtrack::agent
