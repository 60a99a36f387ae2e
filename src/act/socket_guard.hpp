// SocketGuard: ends an exchange on a socket that another library owns, at a deadline, at a size or on request.
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

/// Watches from a thread of its own while it lives. The limits of an HTTP library apply to a single read, and none
/// to a name, a handshake or headers: a server that sends a byte a second would never end. Shutting the socket down
/// wakes whatever the library waits for.
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

  /// The socket in use from now on. The guard keeps a duplicate: a number that is used again is not shut down. Any
  /// thread.
  void watch(int socket);
  void head_has_come() { has_head_ = true; }
  /// A decision that stays. Any thread.
  [[nodiscard]] GuardVerdict verdict() const { return verdict_; }
  /// Waits for 20 ms; false: there is a verdict.
  [[nodiscard]] bool pause() const;
  /// Waits for `is_done`, which is about what `lock` protects, or a verdict; true: it is done. For what is not a
  /// socket: a name that is resolved.
  bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
            const std::function<bool()>& is_done) const;

 private:
  void look();

  const Limits limits_;
  std::atomic<bool> has_head_{false};
  std::atomic<GuardVerdict> verdict_{GuardVerdict::none};
  Clock::time_point cancelled_at_{};  ///< of the thread
  std::mutex mutex_;                  ///< guards what follows
  std::condition_variable changed_;
  std::optional<Descriptor> socket_;
  bool is_over_ = false;
  std::thread thread_;  ///< last: it uses the above
};

}  // namespace vramtrack::act
