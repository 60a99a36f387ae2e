// One line each way over a run's control socket, within a time.
#pragma once

#include <sys/un.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack::run {

using LineDeadline = std::chrono::steady_clock::time_point;

/// Of the socket in a run's folder; false where the path is too long for one.
bool control_address(const std::string& folder, sockaddr_un& address);
/// Up to the newline; empty where it does not come in time or is longer than `longest`.
std::string read_line(int fd, std::size_t longest, LineDeadline until);
/// False where the other side does not take it in time.
bool send_all(int fd, std::string_view text, LineDeadline until);

}  // namespace vramtrack::run
