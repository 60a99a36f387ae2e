// What the program's own heap holds, so that a test can measure how much a call needed. All of trace_test counts.
#pragma once

#include <cstdint>

namespace vramtrack::trace::test {

/// From construction on. One at a time.
class HeapPeak {
 public:
  HeapPeak();
  /// The most that was held since, above what was held then.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::uint64_t begin_bytes_;
};

}  // namespace vramtrack::trace::test
