// MarkBox: queues the marks that clients set for processes until the loop takes them.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "core/sample.hpp"

namespace vramtrack::agent {

/// May be used from any thread.
class MarkBox {
 public:
  static constexpr std::size_t kMost = 4096;  ///< at most this many between two ticks

  /// False if there have been too many since the last tick.
  bool put(Event mark) {
    const std::lock_guard lock(mutex_);
    if (marks_.size() >= kMost) return false;
    marks_.push_back(std::move(mark));
    return true;
  }
  [[nodiscard]] std::vector<Event> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(marks_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Event> marks_;
};

}  // namespace vramtrack::agent
