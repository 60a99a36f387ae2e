// Communicates with a Python program through its attach socket.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/errno_words.hpp"
#include "core/output_file.hpp"
#include "core/printable.hpp"
#include "host/small_file.hpp"
#include "host/unix_socket.hpp"
#include "run/attach.hpp"
#include "run/attach_ways.hpp"

namespace vramtrack::run {
namespace {

constexpr int kPatienceMs = 120'000;  ///< a snapshot of a large program takes time
constexpr std::size_t kLongestLine = 1U << 20U;
constexpr std::size_t kMostLines = 10'000;
/// Connects to the attach socket of the target process; the kernel identifies the listener.
Result<int> connect_to(const std::string& path, std::uint32_t pid) {
  // A blocking connection would wait indefinitely if others are already queued.
  const int fd = connect_unix(path);
  if (fd < 0 && errno == EAGAIN)
    return fail(fmt::format(
        "process {} does not answer: another vramtrack is attached to it, and more are waiting; try again later", pid));
  if (fd < 0) return fail(fmt::format("{}: {}", printable(path), errno_words(errno)));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::getuid() ||
      peer.pid != static_cast<pid_t>(pid)) {
    ::close(fd);
    return fail(fmt::format("{} is not process {}'s: another process listens there", printable(path), pid));
  }
  return fd;
}

}  // namespace

Result<AttachSession> AttachSession::open(const AttachTarget& target, bool with_debugger) {
  const std::uint32_t pid = target.pid();
  std::string path = find_attach_socket(pid);
  if (path.empty()) {
    auto opened = open_attach_socket(target, with_debugger);
    if (!opened) return fail(opened.error());
    path = std::move(*opened);
  }
  const auto connected = connect_to(path, pid);
  if (!connected) return fail(connected.error());
  AttachSession session;
  session.socket_ = *connected;
  return session;
}

AttachSession::AttachSession(AttachSession&& other) noexcept {
  *this = std::move(other);
}
AttachSession& AttachSession::operator=(AttachSession&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(buffer_, other.buffer_);
  return *this;
}
AttachSession::~AttachSession() {
  if (socket_ >= 0) ::close(socket_);
}

Result<std::string> AttachSession::read_line() {
  std::array<char, 4096> piece{};
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;  // asked to end, but the answer is pending
    if (ready == 0) return fail("the program did not answer; another vramtrack may be attached to it");
    const ssize_t got = ready < 0 ? -1 : ::recv(socket_, piece.data(), piece.size(), 0);
    if (got <= 0 || buffer_.size() > kLongestLine) return fail("the program has ended, or has closed the connection");
    buffer_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

Result<std::string> AttachSession::ask(std::string_view request) {
  const std::string line = std::string(request) + '\n';
  if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return fail("the program has ended, or has closed the connection");
  auto answer = read_line();
  if (!answer) return answer;
  if (answer->starts_with("error: ")) return fail(printable(answer->substr(7)));
  return answer->size() > 3 ? answer->substr(3) : std::string{};
}

Status AttachSession::snapshot(const std::string& path) {
  auto file = OutputFile::open(path);
  if (!file) return fail(file.error());
  const int fd = file->descriptor();
  std::string line = "snapshot\n";
  iovec words{line.data(), line.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
  msghdr message{};
  message.msg_iov = &words;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  const bool is_sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
  const auto answer = is_sent ? read_line() : Result<std::string>(fail("the program has ended"));
  if (answer && answer->starts_with("ok")) return file->finish();
  if (!answer) return fail(answer.error());
  return fail(answer->starts_with("error: ") ? printable(answer->substr(7)) : "the snapshot could not be written");
}

Result<std::vector<std::string>> AttachSession::kept(bool since) {
  const auto answer = ask(since ? "kept since" : "kept");
  if (!answer) return fail(answer.error());
  const auto count = parse_unsigned(std::string_view(*answer).substr(0, answer->find(' ')));
  if (!count || *count > kMostLines) return fail("the program did not report what keeps its tensors");
  std::vector<std::string> lines;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto line = read_line();
    if (!line) return fail(line.error());
    lines.push_back(printable(*line));
  }
  return lines;
}

}  // namespace vramtrack::run
