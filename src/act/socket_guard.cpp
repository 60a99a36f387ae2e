#include "act/socket_guard.hpp"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <utility>

namespace vramtrack::act {
namespace {

constexpr std::chrono::milliseconds kLook{20};

/// All bytes received over a TCP connection; nullopt if the kernel does not report them (before 4.1), or for another
/// kind of socket.
std::optional<std::uint64_t> received_bytes(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return std::nullopt;
  return info.tcpi_bytes_received;
}

}  // namespace

SocketGuard::SocketGuard(Limits limits)
    : limits_(std::move(limits)), thread_([this] {
        std::unique_lock lock(mutex_);
        while (!is_over_) {
          look();
          changed_.wait_for(lock, kLook);
        }
      }) {}

SocketGuard::~SocketGuard() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SocketGuard::watch(int socket) {
  const std::scoped_lock lock(mutex_);
  socket_.emplace(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
}

/// REQUIRES: `mutex_` is held.
void SocketGuard::look() {
  if (verdict_ == GuardVerdict::none) {
    const Clock::time_point now = Clock::now();
    const std::uint64_t most = has_head_ ? limits_.most_bytes : limits_.most_bytes_of_head;
    if (limits_.is_cancelled() && cancelled_at_ == Clock::time_point{}) cancelled_at_ = now;
    if (cancelled_at_ != Clock::time_point{} && now >= cancelled_at_ + limits_.grace)
      verdict_ = GuardVerdict::cancelled;
    else if (now >= limits_.deadline)
      verdict_ = GuardVerdict::late;
    else if (socket_ && received_bytes(socket_->get()).value_or(0) > most)
      verdict_ = GuardVerdict::too_large;
  }
  // Repeated each time: the library may have opened another one, or this one was not connected yet.
  if (verdict_ != GuardVerdict::none && socket_) ::shutdown(socket_->get(), SHUT_RDWR);
}

bool SocketGuard::pause() const {
  std::this_thread::sleep_for(kLook);
  return verdict_ == GuardVerdict::none;
}

bool SocketGuard::wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                       const std::function<bool()>& is_done) const {
  while (!is_done() && verdict_ == GuardVerdict::none) changed.wait_for(lock, kLook);
  return is_done();
}

}  // namespace vramtrack::act
