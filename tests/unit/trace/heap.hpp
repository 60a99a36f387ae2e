// The size of the test program's own heap, for measuring how much a call needed. Counts all of trace_test.
#pragma once

#include <cstdint>

namespace vramtrack::trace::test {

/// Measures from its construction on. One at a time.
class HeapPeak {
 public:
  HeapPeak();
  /// The peak since construction, minus the size at construction.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::uint64_t begin_bytes_;
};

}  // namespace vramtrack::trace::test
