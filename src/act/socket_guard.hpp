// SocketGuard: ends an exchange on a socket that another library owns, at a deadline, at a size limit or on request.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "core/descriptor.hpp"

namespace vramtrack::act {

/// Why a guard has ended its exchange.
enum class GuardVerdict : std::uint8_t { none, late, too_large, cancelled };

/// Watches from a thread of its own for as long as it lives. The limits of an HTTP library apply to a single read, and
/// none apply to name resolution, handshake or headers: a server that sends one byte per second would never end.
/// Shutting down the socket wakes the library from any wait.
class SocketGuard {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    Clock::time_point deadline;
    std::uint64_t most_bytes = 0;          ///< received in all
    std::uint64_t most_bytes_of_head = 0;  ///< before head_has_come()
    std::function<bool()> is_cancelled;
    Clock::duration grace{0};  ///< from the cancellation to the end
  };
  explicit SocketGuard(Limits limits);
  ~SocketGuard();
  SocketGuard(const SocketGuard&) = delete;
  SocketGuard& operator=(const SocketGuard&) = delete;

  /// Sets the socket to watch. The guard keeps a duplicate, so that a reused descriptor number is not shut down. Any
  /// thread.
  void watch(int socket);
  void head_has_come() { has_head_ = true; }
  /// Once set, it does not change. Any thread.
  [[nodiscard]] GuardVerdict verdict() const { return verdict_; }
  /// Waits for 20 ms; false: there is a verdict.
  [[nodiscard]] bool pause() const;
  /// Waits for a verdict or for `is_done`, which reads state that `lock` protects; true: it is done. For waits without
  /// a socket, such as the resolution of a name.
  bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
            const std::function<bool()>& is_done) const;

 private:
  void look();

  const Limits limits_;
  std::atomic<bool> has_head_{false};
  std::atomic<GuardVerdict> verdict_{GuardVerdict::none};
  Clock::time_point cancelled_at_{};  ///< used only by the thread
  std::mutex mutex_;                  ///< guards the members below
  std::condition_variable changed_;
  std::optional<Descriptor> socket_;
  bool is_over_ = false;
  std::thread thread_;  ///< last: it uses the above
};

}  // namespace vramtrack::act
