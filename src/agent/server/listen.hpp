// Listening sockets: TCP by address, Unix by path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.hpp"

namespace vramtrack::agent {

/// Splits "127.0.0.1:80", "[::1]:80" or "localhost:80" into host and port. Errors name what was expected.
Result<std::pair<std::string, std::uint16_t>> parse_listen(std::string_view text);

/// True if nobody outside this machine can reach that host (127.0.0.0/8, ::1, localhost).
bool is_loopback_host(std::string_view host);

/// A listening, non-blocking, close-on-exec socket. Errors explain what to do. The caller closes it.
Result<int> listen_tcp(const std::string& listen);
/// The address that `fd` listens on, such as "127.0.0.1:43211".
std::string listening_address(int fd);

/// Like listen_tcp. Creates the folder (0700) if it is missing, and replaces a socket on which nobody answers;
/// `for_everybody`: mode 0666, else 0600.
Result<int> listen_unix(const std::string& path, bool for_everybody);

}  // namespace vramtrack::agent
