#include "agent/server/stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace vramtrack::agent {
namespace {

std::chrono::steady_clock::duration seconds(double s) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(s));
}

}  // namespace

bool ClientStream::wait(short events, Clock::time_point deadline) const {
  if (tls_ && events == POLLIN && tls_->has_buffered()) return true;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one{fd_, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return (one.revents & (POLLERR | POLLNVAL)) == 0;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool ClientStream::fill(std::size_t most) {
  std::array<char, 4096> chunk;
  const std::size_t size = std::min(most, chunk.size());
  const ssize_t got = tls_ ? tls_->read(chunk.data(), size) : ::recv(fd_, chunk.data(), size, 0);
  if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
  buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  return true;
}

ClientStream::Head ClientStream::next_head(double idle_s, double request_s, std::size_t most_bytes, std::string& head) {
  if (buffer_.empty() && !wait(POLLIN, Clock::now() + seconds(idle_s))) return Head::none;
  deadline_ = Clock::now() + seconds(request_s);
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = buffer_.find("\r\n\r\n", searched > 3 ? searched - 3 : 0);
    if (end != std::string::npos && end + 4 <= most_bytes) {
      head = take(end + 4);
      return Head::complete;
    }
    if (buffer_.size() >= most_bytes) return Head::too_large;
    searched = buffer_.size();
    if (!wait(POLLIN, deadline_)) return buffer_.empty() ? Head::none : Head::too_slow;
    if (!fill(most_bytes + 1 - buffer_.size())) return Head::none;
  }
}

std::optional<std::string> ClientStream::body(std::size_t bytes) {
  while (buffer_.size() < bytes)
    if (!wait(POLLIN, deadline_) || !fill(bytes - buffer_.size())) return std::nullopt;
  return take(bytes);
}

std::string ClientStream::take(std::size_t bytes) {
  std::string out = buffer_.substr(0, bytes);
  buffer_.erase(0, bytes);
  return out;
}

bool ClientStream::write(std::string_view bytes, double within_s) {
  const Clock::time_point deadline = Clock::now() + seconds(within_s);
  while (!bytes.empty()) {
    const ssize_t sent =
        tls_ ? tls_->write(bytes.data(), bytes.size()) : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (sent < 0 && errno == EAGAIN) {
      if (!wait(tls_ ? tls_->wants() : POLLOUT, deadline)) return false;
    } else if (sent == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

void ClientStream::send_last_chunk() {
  if (tls_) tls_->close();
}

void ClientStream::linger() {
  send_last_chunk();
  // Closing with unread bytes would send a reset, which may overtake the answer.
  ::shutdown(fd_, SHUT_WR);
  const Clock::time_point deadline = Clock::now() + seconds(1);
  std::array<char, 4096> chunk;
  for (std::size_t taken = 0; taken < (1U << 20) && wait(POLLIN, deadline);) {
    const ssize_t got = ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (got > 0) taken += static_cast<std::size_t>(got);
  }
}

}  // namespace vramtrack::agent
