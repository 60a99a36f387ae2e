// Published: passes the View from the sampling thread to all other threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "core/view.hpp"
#include "report/metrics.hpp"

namespace vramtrack::agent {

/// One immutable state of the monitored machine.
struct Snapshot {
  std::uint64_t generation = 0;  ///< counts from 1
  std::shared_ptr<const View> view;
  OwnCost own;
  std::chrono::steady_clock::time_point published;
};

/// For one writer and any number of readers on any thread.
class Published {
 public:
  /// Swaps the pointer and wakes waiting readers. Takes microseconds, whatever the readers do.
  void publish(std::shared_ptr<const View> view, const OwnCost& own) {
    auto next = std::make_shared<Snapshot>();
    next->view = std::move(view);
    next->own = own;
    next->published = std::chrono::steady_clock::now();
    std::shared_ptr<const Snapshot> old;  // freed outside the lock
    {
      const std::lock_guard lock(mutex_);
      next->generation = latest_ ? latest_->generation + 1 : 1;
      old = std::move(latest_);
      latest_ = std::move(next);
    }
    changed_.notify_all();
  }

  /// The latest snapshot; nullptr before the first.
  [[nodiscard]] std::shared_ptr<const Snapshot> latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

  /// The latest as soon as its generation is above `generation`; nullptr if `timeout` has passed or after close().
  [[nodiscard]] std::shared_ptr<const Snapshot> wait_after(std::uint64_t generation,
                                                           std::chrono::milliseconds timeout) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return closed_ || (latest_ && latest_->generation > generation); });
    return !closed_ && latest_ && latest_->generation > generation ? latest_ : nullptr;
  }

  /// Declares that nothing more will be published, so streams end.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::shared_ptr<const Snapshot> latest_;
  bool closed_ = false;
};

}  // namespace vramtrack::agent
