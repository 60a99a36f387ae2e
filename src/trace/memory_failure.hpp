// MemoryFailures: allocations of a traced process that a limit refused or that failed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/call_site.hpp"

namespace vramtrack::trace {

/// An allocation that a limit refused or that failed, and what was live then.
struct MemoryFailure {
  std::uint64_t time_us = 0;
  std::uint64_t asked_bytes = 0;
  std::uint64_t figure_bytes = 0;  ///< refused: bytes held; failed: bytes free on the device, 0: unknown
  std::uint64_t limit_bytes = 0;   ///< the limit in force; 0: none
  bool is_refused = false;         ///< refused by a limit
  int device = 0;
  probe::Call call = probe::Call::none;
  std::uint32_t stack = 0;
  std::int64_t live_bytes = 0;  ///< device memory, counting blocks within backing once
  std::int64_t backing_bytes = 0;
  std::int64_t cached_bytes = 0;  ///< backing that no block uses
  std::vector<Held> sites;        ///< per call site
};

class MemoryFailures {
 public:
  void set_limit(std::uint64_t bytes) { limit_bytes_ = bytes; }
  /// Counts a record of a failure. Returns the first of its level, to which the caller adds what was live; null if
  /// another one is kept.
  MemoryFailure* take(const probe::Slot& slot);

  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_; }
  /// The failure that the program saw: the framework's first, else the driver's. A framework that raises its own errors
  /// (PyTorch) tries again after the driver refuses memory. Null: none.
  [[nodiscard]] const MemoryFailure* seen(bool has_framework) const {
    if (block_) return &*block_;
    return driver_ && !has_framework ? &*driver_ : nullptr;
  }

 private:
  std::optional<MemoryFailure> block_, driver_;
  std::uint64_t limit_bytes_ = 0;
  std::uint64_t refused_ = 0, failed_ = 0;
};

}  // namespace vramtrack::trace
