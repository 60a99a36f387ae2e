#include "agent/server/stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace vramtrack::agent {
namespace {

bool is_unwanted(std::string_view line) {
  constexpr std::array<std::string_view, 3> kUnwanted = {"range", "accept-encoding", "expect"};
  std::string name(line.substr(0, line.find(':')));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  name.erase(name.find_last_not_of(" \t") + 1);
  return std::find(kUnwanted.begin(), kUnwanted.end(), name) != kUnwanted.end();
}

std::chrono::steady_clock::duration seconds(double s) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(s));
}

}  // namespace

std::string without_unwanted_headers(std::string_view head) {
  std::string out;
  out.reserve(head.size());
  bool first = true;
  while (!head.empty()) {
    const std::size_t newline = head.find('\n');
    const std::string_view line = head.substr(0, newline == std::string_view::npos ? head.size() : newline + 1);
    head.remove_prefix(line.size());
    if (first || !is_unwanted(line)) out += line;
    first = false;
  }
  return out;
}

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

ClientStream::Head ClientStream::next_head(double idle_s, double request_s, std::size_t most_bytes,
                                           std::size_t most_body_bytes) {
  buffer_.erase(0, position_);  // what came behind the last request, if anything
  position_ = 0;
  if (buffer_.empty() && !wait(POLLIN, Clock::now() + seconds(idle_s))) return Head::none;
  deadline_ = Clock::now() + seconds(request_s);
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = buffer_.find("\r\n\r\n", searched > 3 ? searched - 3 : 0);
    if (end != std::string::npos && end + 4 <= most_bytes) {
      const std::string head = without_unwanted_headers(std::string_view(buffer_).substr(0, end + 4));
      buffer_.replace(0, end + 4, head);
      const std::size_t body = buffer_.size() - head.size();
      budget_ = most_body_bytes > body ? most_body_bytes - body : 0;
      return Head::complete;
    }
    if (buffer_.size() >= most_bytes) return Head::too_large;
    searched = buffer_.size();
    if (!wait(POLLIN, deadline_)) return buffer_.empty() ? Head::none : Head::too_slow;
    if (!fill(most_bytes + 1 - buffer_.size())) return Head::none;
  }
}

long ClientStream::read(char* into, std::size_t size) {
  if (!has_buffered()) {
    buffer_.clear();
    position_ = 0;
    while (buffer_.empty()) {
      if (budget_ == 0 || !wait(POLLIN, deadline_)) return -1;
      if (!fill(budget_)) return 0;
    }
    budget_ -= buffer_.size();
  }
  const std::size_t n = std::min(size, buffer_.size() - position_);
  std::memcpy(into, buffer_.data() + position_, n);
  position_ += n;
  return static_cast<long>(n);
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
