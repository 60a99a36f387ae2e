#include "agent/server/guard.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/ascii.hpp"
#include "core/errno_words.hpp"
#include "core/regular_file.hpp"

namespace vramtrack::agent {
namespace {}  // namespace

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
  // Compare every byte of the token, whatever the client sent.
  volatile unsigned difference = given.size() == token.size() ? 0U : 1U;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const auto a = static_cast<unsigned char>(token[i]);
    const auto b = static_cast<unsigned char>(i < given.size() ? given[i] : 0);
    difference = difference | static_cast<unsigned>(a ^ b);
  }
  return difference == 0;
}

Result<std::string> read_token(const std::string& path, const std::string& setting) {
  const std::string what = setting + ' ' + path;
  const auto file = RegularFile::open(path, Links::of_owner);
  if (!file) return fail(file.error().during("cannot read " + setting));
  if (!*file)
    return fail(fmt::format("cannot read {}: {}; create one: (umask 077; openssl rand -hex 32 > {})", what,
                            errno_words(ENOENT), path));
  const struct stat& info = (*file)->info();
  // systemd passes credentials to a service's user as files of root that a group may read (an ACL's mask).
  const char* credentials = std::getenv("CREDENTIALS_DIRECTORY");
  const bool is_credential =
      credentials != nullptr && info.st_uid == 0 && path.starts_with(std::string(credentials) + '/');
  if ((info.st_mode & (is_credential ? 007U : 077U)) != 0)
    return fail(fmt::format("{} can be read by other users; run chmod 600 {}", what, path));
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    return fail(what + " belongs to another user; chown it to the user that reads it");
  const auto whole = (*file)->read(64 * 1024);
  if (!whole) return fail(whole.error().during("cannot read " + setting));
  std::string_view text = *whole;
  text = text.substr(0, text.find_first_of("\r\n"));
  const bool visible = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (text.size() < 16 || text.size() > 512 || !visible)
    return fail(
        fmt::format("{}: its first line must be a token of 16 to 512 visible characters; openssl rand -hex 32 "
                    "makes one",
                    what));
  return std::string(text);
}

}  // namespace vramtrack::agent
