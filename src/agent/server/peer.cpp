#include "agent/server/peer.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "agent/server/own_processes.hpp"
#include "core/ascii.hpp"
#include "core/number_text.hpp"
#include "host/small_file.hpp"

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

/// Returns the IPv4 form of an address that a dual-stack socket reports as IPv6.
sockaddr_storage plain(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6) return address;
  sockaddr_in6 in6{};
  std::memcpy(&in6, &address, sizeof in6);
  if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) return address;
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = in6.sin6_port;
  std::memcpy(&in.sin_addr, in6.sin6_addr.s6_addr + 12, 4);
  sockaddr_storage out{};
  std::memcpy(&out, &in, sizeof in);
  return out;
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
    std::string_view line = next_line(table);
    std::array<std::string_view, 8> fields;
    for (std::string_view& field : fields) field = take_word(line);
    // 01 means established. A closed socket is listed with uid 0, which is root's; never accept that as an answer.
    if (fields.back().empty() || fields[1] != local || fields[2] != remote || fields[3] != "01") continue;
    return parse_number<std::uint32_t>(fields[7]);
  }
  return std::nullopt;
}

namespace {

void put_address(const sockaddr_storage& address, __be16& port, __be32* words) {
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    port = in.sin_port;
    std::memcpy(words, &in.sin_addr, sizeof in.sin_addr);
    return;
  }
  sockaddr_in6 in6{};
  std::memcpy(&in6, &address, sizeof in6);
  port = in6.sin6_port;
  std::memcpy(words, &in6.sin6_addr, sizeof in6.sin6_addr);
}

/// The kernel's record of the socket at `from`, connected to `to`. Looks up only this socket, so thousands of others,
/// which anyone may open, cost nothing.
struct Asked {
  bool answered = false;  ///< the kernel supports the query
  std::optional<std::uint32_t> uid;
};
Asked ask_kernel(const sockaddr_storage& from, const sockaddr_storage& to) {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return {};
  struct {
    nlmsghdr head;
    inet_diag_req_v2 body;
  } question{};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = static_cast<__u8>(from.ss_family);
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = ~0U;
  question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  put_address(from, question.body.id.idiag_sport, question.body.id.idiag_src);
  put_address(to, question.body.id.idiag_dport, question.body.id.idiag_dst);
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  const bool sent = ::send(fd, &question, sizeof question, 0) == sizeof question;
  const ssize_t got = sent ? ::recv(fd, answer.data(), answer.size(), MSG_DONTWAIT) : -1;
  ::close(fd);
  if (got < static_cast<ssize_t>(sizeof(nlmsghdr))) return {};
  nlmsghdr head{};
  std::memcpy(&head, answer.data(), sizeof head);
  const char* body = answer.data() + NLMSG_HDRLEN;
  if (head.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error{};
    if (got < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof error)) return {};
    std::memcpy(&error, body, sizeof error);
    return {error.error == -ENOENT, std::nullopt};
  }
  inet_diag_msg found{};
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || got < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof found)) return {};
  std::memcpy(&found, body, sizeof found);
  // A closed socket is listed with uid 0, which is root's, and if none is connected, the kernel returns a listening
  // one; accept neither.
  if (found.idiag_state != TCP_ESTABLISHED) return {true, std::nullopt};
  return {true, found.idiag_uid};
}

std::optional<std::uint32_t> loopback_uid(const sockaddr_storage& here, const sockaddr_storage& there) {
  if (const Asked asked = ask_kernel(there, here); asked.answered) return asked.uid;
  std::ifstream in(here.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6");
  std::stringstream table;
  table << in.rdbuf();
  return socket_owner(table.view(), kernel_form(there), kernel_form(here));
}

std::string address_name(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return ::inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
  }
  sockaddr_in6 in6{};
  std::memcpy(&in6, &address, sizeof in6);
  std::memset(in6.sin6_addr.s6_addr + 8, 0, 8);
  return fmt::format("{}/64", ::inet_ntop(AF_INET6, &in6.sin6_addr, text.data(), text.size()));
}

}  // namespace

namespace {

/// Nullopt for a process in our own pid namespace, for one outside the namespaces below ours (pid 0), and if access is
/// denied.
std::optional<std::string> foreign_namespace(pid_t pid) {
  static const std::string own = pid_namespace_of(static_cast<std::uint32_t>(::getpid()));
  if (pid <= 0 || own.empty()) return std::nullopt;
  const std::string its = pid_namespace_of(static_cast<std::uint32_t>(pid));
  if (its.empty()) return errno == ENOENT ? std::optional<std::string>("?") : std::nullopt;
  return its == own ? std::nullopt : std::optional(its);
}

}  // namespace

Client client_of(int fd, std::uint32_t own_uid) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_size = sizeof here;
  socklen_t there_size = sizeof there;
  Client nobody{std::nullopt, {"a client that has gone", false}};
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) return nobody;
  std::optional<std::uint32_t> uid;
  std::optional<std::string> pid_namespace;
  if (here.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return nobody;
    uid = credentials.uid;
    pid_namespace = foreign_namespace(credentials.pid);
  } else {
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return nobody;
    here = plain(here);
    there = plain(there);
    if (is_loopback(here) && is_loopback(there)) uid = loopback_uid(here, there);
  }
  if (uid)
    return {uid, {fmt::format("user {}", *uid), !pid_namespace && (*uid == 0 || *uid == own_uid)}, pid_namespace};
  return {uid, {address_name(there), false}};
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
