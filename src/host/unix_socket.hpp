// Unix sockets by their paths.
#pragma once

#include <sys/un.h>

#include <string>

namespace vramtrack {

/// The address of the socket at `path`. False if the path is empty, or too long for an address (107 bytes).
bool unix_address(const std::string& path, sockaddr_un& address);

/// Connects once, without waiting. The descriptor does not block; -1 and errno if nobody answers. EAGAIN: somebody
/// listens there, but the queue is full.
int connect_unix(const std::string& path);

}  // namespace vramtrack
