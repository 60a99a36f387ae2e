// MachineJudge: one machine of a fleet through the engine that every watch has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/verdict.hpp"
#include "fleet/gpus.hpp"

namespace vramtrack::fleet {

/// What became of one GPU.
struct GpuVerdict {
  DeviceInfo device;  ///< with its latest host, and its capacity where that is known
  bool has_uuid = false;
  Verdict verdict;
  std::vector<Alert>
      alerts;  ///< the alerts of leaks, in the order raised; those that are only shown have no paged_because
  std::optional<Alert> suspicion;  ///< that stands, and is not shown as a leak
  std::uint64_t used_bytes = 0;
  std::uint64_t samples = 0;
  Timestamp first;
  Timestamp last;
  std::vector<Tenancy> tenancies;
  bool is_shared = false;    ///< several users' shares were added up
  bool is_by_agent = false;  ///< vramtrack's own agent exports it

  /// The alert that is active; nullptr: the GPU does not leak now.
  [[nodiscard]] const Alert* leak() const;
  /// People are notified of that: the engine's decision, when little time is left.
  [[nodiscard]] bool is_paged() const;
  /// An alert was raised and not withdrawn: what analyze's exit code 1 means.
  [[nodiscard]] bool has_leaked() const;
  /// All who had the GPU at `time`, or last before it: several pods share one by time-slicing or MPS, and which of them
  /// a growth is of, nothing shows. Empty: nobody is known.
  [[nodiscard]] std::vector<const Workload*> users_at(Timestamp time) const;
};

/// One engine for one machine. Not thread-safe; different machines may be judged on different threads.
class MachineJudge {
 public:
  /// `config` is copied by the engine.
  explicit MachineJudge(const Config& config);
  ~MachineJudge();
  MachineJudge(const MachineJudge&) = delete;
  MachineJudge& operator=(const MachineJudge&) = delete;

  /// Takes in what is later than what was taken in before; the rest is left out. A GPU that has another host now goes
  /// on. O(samples).
  void take(const Machine& machine);
  /// Nothing more will come: a suspicion that is sure enough becomes a leak, as at the end of a recording.
  void end();

  /// False while the capacity of one of its GPUs is not known.
  [[nodiscard]] bool knows_capacities() const;
  [[nodiscard]] std::vector<GpuVerdict> verdicts() const;
  /// vramtrack.analysis.v1, one line per series; `from` stands for the files.
  [[nodiscard]] std::string json(const std::string& from) const;

 private:
  struct Feed;
  struct State;
  void feed(std::vector<Feed>& feeds);

  std::unique_ptr<State> state_;
};

}  // namespace vramtrack::fleet
