// A thread's stack at its last walk; most of the next walk is usually identical.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "probe/unwind.hpp"

namespace vramtrack::probe {

/// One frame of a walk, with the places from which the registers of the next one were read. Not zeroed.
struct Step {
  std::uint64_t pc, sp, fp;
  std::uint64_t pc_from;  ///< 0: found in another way, so the rest is searched again
  std::uint64_t fp_from;  ///< 0: not read
  std::uint32_t module;
};

/// The last walk of a thread. A stack seldom changes except at its inner end, and a frame with the same registers leads
/// to the same frames again as long as the words read on the way are unchanged.
class LastWalk {
 public:
  static constexpr std::size_t kMost = 64;

  /// False if another thread has it.
  bool lock() { return !is_taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { is_taken_.store(false, std::memory_order_release); }
  void begin(std::uint64_t epoch) {
    if (epoch_ != epoch) count_ = 0;
    epoch_ = epoch;
  }
  void forget() {
    count_ = 0;
    unlock();
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const Step& operator[](std::size_t i) const { return steps_[i]; }

  /// Whether some step has these registers. Searches outwards from `from`, and moves `from` there.
  bool find(const Registers& at, std::size_t& from) const {
    while (from < count_ && steps_[from].sp < at.sp) ++from;
    return from < count_ && steps_[from].pc == at.pc && steps_[from].sp == at.sp && steps_[from].fp == at.fp;
  }
  /// Appends the unchanged frames, from step `from` on; returns the step at which to continue.
  template <class StackReader>
  std::size_t follow(std::size_t from, NativeFrame* into, std::size_t& count, std::size_t most,
                     StackReader& stack) const {
    for (; from + 1 < count_ && count < most; ++from) {
      const Step& step = steps_[from];
      std::uint64_t word = 0;
      if (step.pc_from == 0 || !stack.read(step.pc_from, word) || word != steps_[from + 1].pc) break;
      if (step.fp_from != 0 && (!stack.read(step.fp_from, word) || word != steps_[from + 1].fp)) break;
      into[count++] = {step.pc, step.module};
    }
    return from;
  }
  /// Replaces the first `replaced` steps by `count` steps.
  void replace(const Step* steps, std::size_t count, std::size_t replaced) {
    const std::size_t rest = std::min(count_ - replaced, kMost - count);
    if (count != replaced) std::memmove(steps_ + count, steps_ + replaced, rest * sizeof(Step));
    std::memcpy(steps_, steps, count * sizeof(Step));
    count_ = count + rest;
  }

 private:
  std::atomic<bool> is_taken_;
  std::uint64_t epoch_;
  std::size_t count_;
  Step steps_[kMost];
};

}  // namespace vramtrack::probe
