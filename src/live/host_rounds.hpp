// HostRounds: when the live loop reads the host memory of the programs that hold GPU memory, and what it learns
// about processes that the kernel ended because it ran out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "host/host_memory.hpp"
#include "host/oom_kills.hpp"

namespace vramtrack {

/// One per live loop. Not thread-safe.
class HostRounds {
 public:
  static constexpr double kPace_s = 10;
  /// Which memory ran out ("cgroup", "machine"), and whether the process held GPU memory.
  using Kills = std::map<std::pair<std::string, bool>, std::uint64_t>;

  HostRounds(const StallConfig& config, const SourcesConfig& sources);

  /// Call it last with each poll's `batch`. Marks each process_ended whose process the kernel ended, and adds a
  /// host_out_of_memory for each process of the machine that it ended. If a round is due, adds for each process that
  /// has held at least stall.min-memory-mb of GPU memory its host memory, and as events who limits that,
  /// if it has changed. Cost of a poll: one system call, and two small files per end of a process; of a round:
  /// those of read_process_memory() and read_host_limit(), for each such process.
  void add(Catalog& catalog, Timestamp now, Batch& batch);

  /// The kills since the start.
  [[nodiscard]] const Kills& kills() const { return kills_; }

 private:
  using Process = std::pair<std::uint32_t, std::uint64_t>;  ///< pid and start ticks
  struct Known {
    std::string device_id;  ///< the series of its host memory belong to it as long as it lives
    std::string cgroup;
    std::string limit_name;
    std::uint64_t limit_bytes = 0;
    std::uint64_t anonymous_bytes = 0;
    std::map<std::string, std::uint64_t> gpu_bytes;  ///< by device
    bool is_followed = false;                        ///< whether it has held enough
    bool was_killed = false;                         ///< according to the kernel's log
  };

  void note_holdings(const Catalog& catalog, const Batch& batch);
  void add_kills(const Catalog& catalog, Timestamp now, Batch& batch);
  void add_kill(const Catalog& catalog, const OomKill& kill, const Process* process, Timestamp now, Batch& batch);
  void look(Catalog& catalog, Timestamp now, Batch& batch);
  void look_at(Catalog& catalog, const Process& process, Known& known, const HostMemory& machine, Timestamp now,
               Batch& batch);

  double least_bytes_;
  std::string proc_root_;
  std::string cgroup_root_;
  OomKills oom_;
  Timestamp next_ = Timestamp::min();
  Timestamp last_ = Timestamp::min();
  std::map<Process, Known> known_;
  Kills kills_;
};

}  // namespace vramtrack
