#include "run/client/socket_line.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "host/interrupt.hpp"
#include "host/unix_socket.hpp"

namespace vramtrack::run {

bool control_address(const std::string& folder, sockaddr_un& address) {
  return unix_address(folder + "/control", address);
}

std::string read_line(int fd, std::size_t longest, LineDeadline until) {
  std::string line;
  std::array<char, 65536> piece{};
  while (line.size() < longest) {
    if (!Interrupt::wait_ready(fd, POLLIN, until)) return {};
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), 0);
    if (got <= 0) return {};
    const std::string_view text(piece.data(), static_cast<std::size_t>(got));
    const std::size_t end = text.find('\n');
    line.append(text.substr(0, end));
    if (end != std::string_view::npos) return line;
  }
  return {};
}

bool send_all(int fd, std::string_view text, LineDeadline until) {
  while (!text.empty()) {
    if (!Interrupt::wait_ready(fd, POLLOUT, until)) return false;
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace vramtrack::run
