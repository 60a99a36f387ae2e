// Exchanges one line in each direction over a run's control socket, with a timeout.
#pragma once

#include <sys/un.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack::run {

using LineDeadline = std::chrono::steady_clock::time_point;

/// The address of the socket in a run's folder; false if the path is too long for one.
bool control_address(const std::string& folder, sockaddr_un& address);
/// Reads a line up to the newline; empty if it does not arrive in time or is longer than `longest`.
std::string read_line(int fd, std::size_t longest, LineDeadline until);
/// Sends `text`; false if the other side does not accept it in time.
bool send_all(int fd, std::string_view text, LineDeadline until);

}  // namespace vramtrack::run
