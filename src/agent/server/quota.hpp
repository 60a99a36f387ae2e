// Quota: thread-safe FairQuota; the destructor of Held returns what was taken.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "agent/server/fair_quota.hpp"

namespace vramtrack::agent {

/// An amount that was taken; returned at destruction. May outlive its Quota.
class Held;

/// Any thread may use it.
class Quota {
 public:
  Quota(std::uint64_t most, std::uint64_t reserve) : core_(std::make_shared<Core>(most, reserve)) {}

  struct Taken;
  /// Takes `amount` for `peer`. Waits at most `patience` until it is granted.
  [[nodiscard]] Taken take(const Peer& peer, std::uint64_t amount = 1, std::chrono::milliseconds patience = {});
  [[nodiscard]] FairQuota::Answer ask(const Peer& peer, std::uint64_t amount = 1) const {
    const std::lock_guard lock(core_->mutex);
    return core_->quota.ask(peer, amount);
  }
  [[nodiscard]] std::uint64_t taken() const {
    const std::lock_guard lock(core_->mutex);
    return core_->quota.taken();
  }
  void set_most(std::uint64_t most) {
    const std::lock_guard lock(core_->mutex);
    core_->quota.set_most(most);
  }

 private:
  friend class Held;
  struct Core {
    Core(std::uint64_t most, std::uint64_t reserve) : quota(most, reserve) {}
    std::mutex mutex;
    std::condition_variable freed;
    FairQuota quota;
  };
  std::shared_ptr<Core> core_;
};

class Held {
 public:
  Held() = default;
  Held(Held&& other) noexcept = default;
  Held& operator=(Held&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(peer_, other.peer_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Held() {
    if (!core_) return;
    {
      const std::lock_guard lock(core_->mutex);
      core_->quota.give_back(peer_, amount_);
    }
    core_->freed.notify_all();
  }

 private:
  friend class Quota;
  Held(std::shared_ptr<Quota::Core> core, Peer peer, std::uint64_t amount)
      : core_(std::move(core)), peer_(std::move(peer)), amount_(amount) {}

  std::shared_ptr<Quota::Core> core_;
  Peer peer_;
  std::uint64_t amount_ = 0;
};

struct Quota::Taken {
  FairQuota::Answer answer = FairQuota::Answer::full;
  Held held;  ///< empty unless granted
};

inline Quota::Taken Quota::take(const Peer& peer, std::uint64_t amount, std::chrono::milliseconds patience) {
  std::unique_lock lock(core_->mutex);
  FairQuota::Answer answer = FairQuota::Answer::full;
  core_->freed.wait_for(lock, patience, [&] {
    answer = core_->quota.take(peer, amount);
    return answer == FairQuota::Answer::granted;
  });
  if (answer != FairQuota::Answer::granted) return {answer, {}};
  return {answer, Held(core_, peer, amount)};
}

}  // namespace vramtrack::agent
