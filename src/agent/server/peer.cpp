#include "agent/server/peer.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

namespace vramtrack::agent {
namespace {

/// The address as /proc/net/tcp writes it: 32-bit words in the machine's order, then the port.
std::string kernel_form(const sockaddr_storage& address) {
  std::string out;
  const auto words = [&out](const void* bytes, std::size_t count) {
    std::array<std::uint32_t, 4> word{};
    std::memcpy(word.data(), bytes, count * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < count; ++i) out += fmt::format("{:08X}", word[i]);
  };
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    words(&in.sin_addr, 1);
    return out + fmt::format(":{:04X}", ntohs(in.sin_port));
  }
  sockaddr_in6 in6{};
  std::memcpy(&in6, &address, sizeof in6);
  words(&in6.sin6_addr, 4);
  return out + fmt::format(":{:04X}", ntohs(in6.sin6_port));
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 in6{};
  std::memcpy(&in6, &address, sizeof in6);
  return address.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

}  // namespace

std::optional<std::uint32_t> socket_owner(std::string_view table, std::string_view local, std::string_view remote) {
  //   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid ...
  while (!table.empty()) {
    const std::size_t newline = table.find('\n');
    std::string_view line = table.substr(0, newline);
    table.remove_prefix(newline == std::string_view::npos ? table.size() : newline + 1);
    std::array<std::string_view, 8> fields;
    std::size_t count = 0;
    while (count < fields.size()) {
      const std::size_t begin = line.find_first_not_of(' ');
      if (begin == std::string_view::npos) break;
      line.remove_prefix(begin);
      const std::size_t end = std::min(line.find(' '), line.size());
      fields[count++] = line.substr(0, end);
      line.remove_prefix(end);
    }
    // 01: established. A socket that has been closed shows with uid 0, which is root's: never take that for an answer.
    if (count < fields.size() || fields[1] != local || fields[2] != remote || fields[3] != "01") continue;
    std::uint32_t uid = 0;
    const auto [end, ec] = std::from_chars(fields[7].data(), fields[7].data() + fields[7].size(), uid);
    if (ec != std::errc{} || end != fields[7].data() + fields[7].size()) return std::nullopt;
    return uid;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> peer_uid(int fd) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_size = sizeof here;
  socklen_t there_size = sizeof there;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) return std::nullopt;
  if (here.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
    return credentials.uid;
  }
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return std::nullopt;
  if (!is_loopback(here) || !is_loopback(there)) return std::nullopt;
  std::ifstream in(here.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6");
  std::stringstream table;
  table << in.rdbuf();
  return socket_owner(table.view(), kernel_form(there), kernel_form(here));
}

Rights rights_of(std::optional<std::uint32_t> uid, std::uint32_t own_uid) {
  if (!uid) return {};
  const bool trusted = *uid == 0 || *uid == own_uid;
  return {trusted, trusted, user_name(*uid)};
}

std::string user_name(std::uint32_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return std::to_string(uid);
}

}  // namespace vramtrack::agent
