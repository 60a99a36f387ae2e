// The resources that the agent's own process and its store use.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "report/metrics.hpp"

namespace vramtrack::agent {

/// Not thread-safe.
class OwnUse {
 public:
  /// Adds processor time, resident memory, and the size of the store at `store_path` (empty: none), which is read only
  /// every 10 s. Some 20 µs.
  void add_to(OwnCost& cost, const std::string& store_path);

 private:
  std::uint64_t store_bytes_ = 0;
  std::chrono::steady_clock::time_point next_size_{};
};

}  // namespace vramtrack::agent
