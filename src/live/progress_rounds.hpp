// ProgressRounds: when the live loop asks the kernel whether processes that hold memory make progress, and which
// processes it asks about.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "host/progress.hpp"

namespace vramtrack {

/// One per live loop. Not thread-safe.
class ProgressRounds {
 public:
  ProgressRounds(const StallConfig& config, const SourcesConfig& sources)
      : config_(config), reader_(sources.proc_root, sources.sys_root) {}

  /// If a round is due (every StallConfig::look_s()), adds to `batch`, which holds the samples of one poll, the
  /// readings of its processes of at least stall.min-memory-mb. True if a round was due. Cost: ProgressReader's, else
  /// nothing.
  bool add(const Catalog& catalog, Timestamp now, Batch& batch);

  /// From now on, processes for which `is_held` is true are marked as held by a policy. Called on the loop's thread.
  void mark_held(std::function<bool(std::uint32_t pid, std::uint64_t start_ticks)> is_held) {
    is_held_ = std::move(is_held);
  }

 private:
  StallConfig config_;
  ProgressReader reader_;
  std::function<bool(std::uint32_t, std::uint64_t)> is_held_;
  Timestamp next_ = Timestamp::min();
  Timestamp last_ = Timestamp::min();
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> held_bytes_;  ///< scratch
  std::vector<ProcessInfo> asked_;                                               ///< scratch
};

}  // namespace vramtrack
