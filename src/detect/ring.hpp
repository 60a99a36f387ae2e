// Ring: a queue whose memory grows with its content, up to a fixed maximum. A detector for a process that lives for a
// minute must not take as much memory as one for a process that is watched for a day.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace vramtrack {

/// Makes room for one more element in a vector that will never hold more than `most`.
template <typename T>
void reserve_one_more(std::vector<T>& values, std::size_t most) {
  constexpr std::size_t kLeast = 4;
  if (values.size() == values.capacity()) values.reserve(std::min(most, std::max(kLeast, 2 * values.size())));
}

/// All O(1), push_back() amortised.
template <typename T, std::size_t kMost>
class Ring {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool full() const { return size_ == kMost; }
  /// i = 0 is the oldest.
  [[nodiscard]] T& operator[](std::size_t i) { return slots_[at(i)]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return slots_[at(i)]; }
  [[nodiscard]] const T& front() const { return (*this)[0]; }
  [[nodiscard]] const T& back() const { return (*this)[size_ - 1]; }
  /// REQUIRES: not full().
  void push_back(const T& value) {
    if (size_ == slots_.size()) {
      std::rotate(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(oldest_), slots_.end());
      oldest_ = 0;
      reserve_one_more(slots_, kMost);
      slots_.push_back(value);
    } else {
      slots_[at(size_)] = value;
    }
    ++size_;
  }
  void pop_front() {
    oldest_ = at(1);
    --size_;
  }
  void pop_back() { --size_; }

 private:
  [[nodiscard]] std::size_t at(std::size_t i) const {
    const std::size_t sum = oldest_ + i;
    return sum < slots_.size() ? sum : sum - slots_.size();
  }

  std::vector<T> slots_;
  std::size_t oldest_ = 0;
  std::size_t size_ = 0;
};

}  // namespace vramtrack
