// MarkBox: marks that clients make for processes, on their way to the loop.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "core/sample.hpp"

namespace vramtrack::agent {

/// From any thread.
class MarkBox {
 public:
  static constexpr std::size_t kMost = 4096;  ///< between two ticks

  /// False: there were too many since the last tick.
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
