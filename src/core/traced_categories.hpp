// TracedCategories: the memory of running programs by category, from the source that sees their allocations to
// whoever requests it. It is part of no sample: nothing is judged or stored by it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace vramtrack {

/// Thread-safe.
class TracedCategories {
 public:
  /// Names and bytes of each process, by pid.
  using ByProcess = std::map<std::uint32_t, std::vector<std::pair<std::string, double>>>;

  void set(ByProcess now) {
    const std::lock_guard lock(mutex_);
    now_ = std::move(now);
  }
  [[nodiscard]] ByProcess get() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }

 private:
  mutable std::mutex mutex_;
  ByProcess now_;
};

}  // namespace vramtrack
