#include "agent/server/listen.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/file_way.hpp"
#include "core/number_text.hpp"
#include "host/unix_socket.hpp"

namespace vramtrack::agent {
namespace {

/// Holds clients that connect while the accepting thread is not scheduled. A full queue makes a TCP client wait for a
/// second, so it is long; emptying it takes some 30 ms. On a Unix socket, clients get places in the queue in turn, so
/// it may be short: root waits for those ahead.
constexpr int kTcpBacklog = 1024;
constexpr int kUnixBacklog = 128;

}  // namespace

Result<std::pair<std::string, std::uint16_t>> parse_listen(std::string_view text) {
  const auto wrong = [&] {
    return fail(fmt::format(
        "agent.listen: '{}' is not an address; write, for example, 127.0.0.1:9474, [::1]:9474 or 9474", text));
  };
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view port = text.substr(colon == std::string_view::npos ? 0 : colon + 1);
  if (host.empty()) host = "127.0.0.1";
  if (host.front() == '[') {
    if (host.back() != ']') return wrong();
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong();
  }
  const auto number = parse_number<std::uint16_t>(port);
  if (!number || host.empty()) return wrong();
  return std::pair{std::string(host), *number};
}

bool is_loopback_host(std::string_view host) {
  const std::string text(host);
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  if (::inet_pton(AF_INET6, text.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

Result<int> listen_tcp(const std::string& listen) {
  const auto parsed = parse_listen(listen);
  if (!parsed) return fail(parsed.error());
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST;
  // Someone may have pointed the name localhost elsewhere, so bind the address that it stands for.
  const std::string host = parsed->first == "localhost" ? "127.0.0.1" : parsed->first;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(parsed->second).c_str(), &hints, &found); error != 0)
    return fail(fmt::format("agent.listen: '{}' is not an IP address ({}); give an address, not a name", parsed->first,
                            ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  Descriptor fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return fail(fmt::format("cannot create a socket for {}: {}", listen, errno_words(errno)));
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), kTcpBacklog) != 0)
    return fail(fmt::format(
        "cannot listen on {}: {}; set agent.listen to another port or address, or stop the program that uses it",
        listen, errno_words(errno)));
  return fd.release();
}

std::string listening_address(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return address.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<int> listen_unix(const std::string& path, bool for_everybody) {
  sockaddr_un address;
  if (!unix_address(path, address))
    return fail(fmt::format("agent.socket: {} is longer than {} bytes, the limit of a socket's path", path,
                            sizeof address.sun_path - 1));
  if (const Status ours = check_links(path); !ours) return fail(ours.error());
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(fmt::format(
        "cannot create {} for the agent's socket: {}; set agent.socket to a path that you can write, or to none",
        folder.string(), errno_words(errno)));
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode))
      return fail(fmt::format("{} exists and is not a socket; move it away, or set agent.socket", path));
    if (Descriptor(connect_unix(path)).get() >= 0 || errno == EAGAIN)
      return fail(fmt::format("an agent already answers on {}; stop it, or give this one another agent.socket", path));
    ::unlink(path.c_str());  // left by an agent that was killed
  }
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return fail(fmt::format("cannot create a socket for {}: {}", path, errno_words(errno)));
  // Nobody can connect between bind and listen, so the rights are never wider than intended.
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::fchmodat(AT_FDCWD, path.c_str(), for_everybody ? 0666 : 0600, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::listen(fd.get(), kUnixBacklog) != 0)
    return fail(fmt::format("cannot listen on {}: {}; set agent.socket to a path that you can write, or to none", path,
                            errno_words(errno)));
  return fd.release();
}

}  // namespace vramtrack::agent
