// LastAllocations: the newest allocations of a process, whether freed or not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/lockstep.hpp"

namespace vramtrack::trace {

class LastAllocations {
 public:
  void add(std::uint64_t time_us, std::uint32_t site) {
    if (all_.size() < kMost)
      all_.push_back({time_us, site});
    else
      all_[next_++ % kMost] = {time_us, site};
  }
  /// Call once, at the end. Records of different threads may be slightly out of order.
  void finish() {
    if (next_ > 0) std::rotate(all_.begin(), all_.begin() + next_ % kMost, all_.end());
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Passing& a, const Passing& b) { return a.time_us < b.time_us; });
  }
  /// The allocations, in order after finish().
  [[nodiscard]] const std::vector<Passing>& all() const { return all_; }

 private:
  static constexpr std::size_t kMost = 1U << 15U;  // several training steps of large models; 16 bytes each
  std::vector<Passing> all_;                       ///< a ring until finish()
  std::size_t next_ = 0;
};

}  // namespace vramtrack::trace
