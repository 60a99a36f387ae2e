#include "agent/server/guard.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/errno_words.hpp"

namespace vramtrack::agent {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

bool host_allowed(std::string_view host, std::string_view own_host, std::span<const std::string> allowed) {
  if (host.empty()) return false;
  if (host.front() == '[') {
    const std::size_t end = host.find(']');
    in6_addr address{};
    return end != std::string_view::npos && (end + 1 == host.size() || host[end + 1] == ':') &&
           ::inet_pton(AF_INET6, std::string(host.substr(1, end - 1)).c_str(), &address) == 1;
  }
  const std::string name = lower(host.substr(0, host.find(':')));
  in_addr address{};
  if (::inet_pton(AF_INET, name.c_str(), &address) == 1 || name == "localhost") return true;
  if (!own_host.empty() && name == lower(own_host)) return true;
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& a) { return name == lower(a); });
}

bool origin_is_host(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {std::string_view("http://"), std::string_view("https://")})
    if (origin.substr(0, scheme.size()) == scheme) return lower(origin.substr(scheme.size())) == lower(host);
  return false;
}

bool bears_token(std::string_view authorization, std::string_view token) {
  constexpr std::string_view kScheme = "bearer ";
  if (token.empty() || lower(authorization.substr(0, kScheme.size())) != kScheme) return false;
  const std::string_view given = authorization.substr(kScheme.size());
  // Every byte of the token is compared, whatever was given.
  volatile unsigned difference = given.size() == token.size() ? 0U : 1U;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const auto a = static_cast<unsigned char>(token[i]);
    const auto b = static_cast<unsigned char>(i < given.size() ? given[i] : 0);
    difference = difference | static_cast<unsigned>(a ^ b);
  }
  return difference == 0;
}

Result<std::string> read_token(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return fail(fmt::format("cannot read agent.token-file {}: {}; make one: (umask 077; openssl rand -hex 32 > {})",
                            path, errno_words(errno), path));
  struct stat info {};
  std::array<char, 1024> bytes{};
  const bool known = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const ssize_t got = known ? ::read(fd, bytes.data(), bytes.size()) : -1;
  ::close(fd);
  if (!known) return fail(fmt::format("agent.token-file {} is not a regular file", path));
  if ((info.st_mode & 077) != 0)
    return fail(fmt::format("agent.token-file {} can be read by other users; run chmod 600 {}", path, path));
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    return fail(fmt::format("agent.token-file {} belongs to another user; chown it to the agent's user", path));
  std::string_view text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  text = text.substr(0, text.find_first_of("\r\n"));
  const bool visible = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (text.size() < 16 || text.size() > 512 || !visible)
    return fail(fmt::format(
        "agent.token-file {}: its first line must be a token of 16 to 512 visible characters; openssl rand -hex 32 "
        "makes one",
        path));
  return std::string(text);
}

}  // namespace vramtrack::agent
