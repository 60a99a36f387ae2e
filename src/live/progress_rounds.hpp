// ProgressRounds: when the live loop asks the kernel about processes that hold memory, and which ones; and the facts
// beside memory that a round makes samples of (docs/design/0027-facts.md).
#pragma once

#include <functional>
#include <map>
#include <string>
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

  /// Call it with each poll's `batch`. If a round is due (every StallConfig::look_s(), or half a minute where stalls
  /// are not looked for), adds the readings of the processes of at least stall.min-memory-mb, and the facts: how much
  /// each of them has read, its clients, and how busy the devices and processes were since the round before. True if a
  /// round was due. Cost: ProgressReader's, else an addition for each reading of the driver.
  bool add(Catalog& catalog, Timestamp now, Batch& batch);

  /// From now on, processes for which `is_held` is true are marked as held by a policy. Called on the loop's thread.
  void mark_held(std::function<bool(std::uint32_t pid, std::uint64_t start_ticks)> is_held) {
    is_held_ = std::move(is_held);
  }

 private:
  using Process = std::pair<std::uint32_t, std::uint64_t>;  ///< pid and start ticks
  struct Holding {
    std::uint64_t bytes = 0;
    std::string device_id;  ///< one that it holds memory on
  };
  /// The sum of the shares of time that the driver reported since the last round.
  struct Busy {
    double sum = 0;
    bool told = false;
  };

  [[nodiscard]] double pace_s() const;
  void collect_busy(const Catalog& catalog, const Batch& batch);
  void add_busy(Catalog& catalog, Timestamp now, Batch& batch);
  void add_read(Catalog& catalog, const ProgressReading& reading, Batch& batch);

  StallConfig config_;
  ProgressReader reader_;
  std::function<bool(std::uint32_t, std::uint64_t)> is_held_;
  Timestamp next_ = Timestamp::min();
  Timestamp last_ = Timestamp::min();
  std::map<std::string, Busy> device_busy_;     ///< by device
  std::map<std::uint32_t, Busy> process_busy_;  ///< by the id of the series of its memory
  std::size_t polls_ = 0;                       ///< since the last round
  std::map<Process, Holding> holds_;            ///< scratch
  std::vector<ProcessInfo> asked_;              ///< scratch
  std::vector<ProgressReading> readings_;       ///< scratch
};

}  // namespace vramtrack
