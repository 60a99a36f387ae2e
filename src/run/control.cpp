#include "run/control.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "host/small_file.hpp"
#include "run/client/ask.hpp"
#include "run/client/socket_line.hpp"

namespace vramtrack::run {
namespace {

constexpr std::size_t kLongestRequest = 1024;
constexpr std::string_view kRequests =
    "expected 'limit BYTES', 'soft-limit BYTES', 'mark NAME', 'status', 'report', 'categories' or 'kept'";

bool is_ours(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::getuid() || peer.uid == 0);
}

}  // namespace

Result<ControlRequest> parse_control(std::string_view line) {
  const std::size_t blank = line.find(' ');
  const std::string_view word = line.substr(0, blank);
  const std::string_view rest = blank == std::string_view::npos ? std::string_view{} : trimmed(line.substr(blank));
  ControlRequest request;
  if (word == "status" && rest.empty()) {
    request.asks_status = true;
    return request;
  }
  if (word == "report" && rest.empty()) {
    request.asks_report = true;
    return request;
  }
  if (word == "categories" && rest.empty()) {
    request.asks_categories = true;
    return request;
  }
  if (word == "kept") {
    const auto number = rest.empty() ? std::optional<std::uint64_t>(0) : parse_unsigned(rest);
    if (!number) return fail("'kept' needs the number of a look, or nothing");
    request.kept = *number;
    return request;
  }
  if (word == "mark" && !rest.empty() && rest.size() <= 200) {
    request.mark = std::string(rest);
    return request;
  }
  if (word == "limit" || word == "soft-limit") {
    const auto bytes = parse_unsigned(rest);
    if (!bytes) return fail(fmt::format("'{}' needs a number of bytes, 0 for none", word));
    (word == "limit" ? request.limit_bytes : request.soft_limit_bytes) = *bytes;
    return request;
  }
  return fail(std::string(kRequests));
}

Result<ControlSocket> ControlSocket::open(const std::string& folder) {
  sockaddr_un address{};
  if (!control_address(folder, address)) return fail(fmt::format("{}: the path is too long for a socket", folder));
  ControlSocket control;
  control.socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (control.socket_ < 0 ||
      ::bind(control.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(address.sun_path, 0600) != 0 || ::listen(control.socket_, 8) != 0)
    return fail(fmt::format("{}: {}", address.sun_path, errno_words(errno)));
  control.path_ = address.sun_path;
  return control;
}

ControlSocket::ControlSocket(ControlSocket&& other) noexcept {
  *this = std::move(other);
}
ControlSocket& ControlSocket::operator=(ControlSocket&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(socket_, other.socket_);
  return *this;
}
ControlSocket::~ControlSocket() {
  if (socket_ >= 0) ::close(socket_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

void ControlSocket::serve(const Answer& answer) {
  for (;;) {
    const Descriptor connection(::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() < 0) return;
    if (!is_ours(connection.get())) continue;
    const auto request = parse_control(
        read_line(connection.get(), kLongestRequest, std::chrono::steady_clock::now() + kControlPatience));
    const std::string text = (request ? answer(*request) : "error: " + request.error().message) + '\n';
    send_all(connection.get(), text, std::chrono::steady_clock::now() + kControlPatience);
  }
}

}  // namespace vramtrack::run
