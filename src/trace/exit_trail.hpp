// ExitTrail: what a process has freed since it last allocated, which may be its exit.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "trace/call_site.hpp"
#include "trace/category.hpp"
#include "trace/run_floors.hpp"

namespace vramtrack::trace {

class ExitTrail {
 public:
  struct Returned {
    std::uint32_t site = 0;
    std::uint64_t time_us = 0;  ///< when it was allocated
    Held held;
    std::optional<LiveReports::BlockReport> reported;
  };
  /// What the process held before the first of these frees.
  struct Before {
    RunFloors::Place place;
    std::int64_t live_bytes = 0;  ///< device and pinned memory
    std::int64_t backing_bytes = 0, backed_bytes = 0;
    std::size_t blocks = 0;
  };

  [[nodiscard]] bool empty() const { return returned_.empty(); }
  void begin(const Before& before) {
    before_ = before;
    freed_bytes_ = 0;
  }
  void add(Returned returned) {
    freed_bytes_ += returned.held.bytes;
    returned_.push_back(std::move(returned));
  }
  void forget() {
    returned_.clear();
    unused_.clear();
  }
  /// Whether an allocation of this size shows that it was not the exit: it is not tiny, or most memory is held.
  [[nodiscard]] bool is_refuted_by(std::int64_t bytes) const {
    return !empty() && (!is_most() || 100 * bytes > before_.live_bytes || returned_.size() > 1000 + 2 * before_.blocks);
  }
  /// Whether most of what the process held was freed.
  [[nodiscard]] bool is_most() const { return 2 * freed_bytes_ >= before_.live_bytes; }

  // A segment counts for its site again once it contains no block; when the trail began, it contained some.
  void add_unused(const LiveCell& segment) {
    if (!empty()) unused_.emplace(segment.address, segment.site);
  }
  bool erase_unused(std::uint64_t address) { return unused_.erase(address) > 0; }

  [[nodiscard]] const Before& before() const { return before_; }
  [[nodiscard]] const std::vector<Returned>& returned() const { return returned_; }
  [[nodiscard]] const std::unordered_map<std::uint64_t, std::uint32_t>& unused() const { return unused_; }

 private:
  std::vector<Returned> returned_;
  std::unordered_map<std::uint64_t, std::uint32_t> unused_;  ///< sites by segment address
  Before before_;
  std::int64_t freed_bytes_ = 0;
};

}  // namespace vramtrack::trace
