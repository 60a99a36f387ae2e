// ProgressRounds: when the live loop reads the kernel's data on processes that hold memory, and on which ones; and the
// facts besides memory that a round turns into samples (docs/design/0027-facts.md).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "host/progress.hpp"

namespace vramtrack {

/// By pid and start ticks: what a policy currently does to a process, in words: "pid 42 is frozen by policy P".
using HeldProcesses = std::map<std::pair<std::uint32_t, std::uint64_t>, std::string>;

/// One per live loop. Not thread-safe.
class ProgressRounds {
 public:
  ProgressRounds(const StallConfig& config, const SourcesConfig& sources)
      : config_(config), proc_root_(sources.proc_root), reader_(sources.proc_root, sources.sys_root) {}

  /// Call it with each poll's `batch`. Adds an event for each process that a policy holds from now on, or no longer
  /// does. If a round is due (every StallConfig::look_s(), or half a minute if stalls
  /// are not detected), adds the readings of the processes of at least stall.min-memory-mb, and the facts: how much
  /// each of them has read, its clients, how busy the devices and processes were since the last round, and, once, how
  /// old each process is. True if a round was due. Cost: ProgressReader's, otherwise one addition per reading of the
  /// driver.
  bool add(Catalog& catalog, Timestamp now, Batch& batch);

  /// From now on, `held` names the processes that a policy holds. Called in add(), on the loop's thread.
  void mark_held(std::function<HeldProcesses()> held) { held_ = std::move(held); }

 private:
  using Process = HeldProcesses::key_type;
  struct Holding {
    std::uint64_t bytes = 0;
    std::string device_id;  ///< one that it holds memory on
  };
  /// The sum of the shares of time that the driver reported since the last round.
  struct Busy {
    double sum = 0;
    bool reported = false;
  };

  [[nodiscard]] double pace_s() const;
  void add_held(Timestamp now, Batch& batch);
  void collect_busy(const Catalog& catalog, const Batch& batch);
  void add_busy(Catalog& catalog, Timestamp now, Batch& batch);
  void add_age(Catalog& catalog, Timestamp now, Batch& batch);
  void add_read(Catalog& catalog, const ProgressReading& reading, Batch& batch);

  StallConfig config_;
  std::string proc_root_;
  ProgressReader reader_;
  std::function<HeldProcesses()> held_;
  HeldProcesses reported_held_;
  Timestamp next_ = Timestamp::min();
  Timestamp last_ = Timestamp::min();
  std::map<std::string, Busy> device_busy_;     ///< by device
  std::map<std::uint32_t, Busy> process_busy_;  ///< by the id of the series of its memory
  std::size_t polls_ = 0;                       ///< since the last round
  std::set<Process> aged_;                      ///< processes whose age was reported
  std::map<Process, Holding> holds_;            ///< scratch
  std::vector<ProcessInfo> asked_;              ///< scratch
  std::vector<ProgressReading> readings_;       ///< scratch
};

}  // namespace vramtrack
