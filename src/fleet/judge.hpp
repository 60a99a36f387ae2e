// MachineJudge: judges one machine of a fleet with the same engine as every watch.
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

/// The verdict on one GPU.
struct GpuVerdict {
  DeviceInfo device;  ///< with its latest host and, if known, its capacity
  bool has_uuid = false;
  Verdict verdict;
  std::vector<Alert>
      alerts;  ///< the alerts of leaks, in the order raised; those that are only shown have no paged_because
  std::optional<Alert> suspicion;  ///< the active one, if it is not shown as a leak
  std::uint64_t used_bytes = 0;
  std::uint64_t samples = 0;
  Timestamp first;
  Timestamp last;
  std::vector<Tenancy> tenancies;
  bool is_shared = false;    ///< the shares of several users were added up
  bool is_by_agent = false;  ///< vramtrack's own agent exports it

  /// The active alert; nullptr: the GPU does not leak now.
  [[nodiscard]] const Alert* leak() const;
  /// Whether people are notified: the engine decides that when little time is left.
  [[nodiscard]] bool is_paged() const;
  /// Whether an alert was raised and not withdrawn, which analyze reports as exit code 1.
  [[nodiscard]] bool has_leaked() const;
  /// Everybody who used the GPU at `time`, or last before it: several pods can share it by time-slicing or MPS, and it
  /// is unknown which of them grows. Empty: no user is known.
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

  /// Adds samples that are later than those already added and ignores the rest. A GPU continues even if its host has
  /// changed. O(samples).
  void take(const Machine& machine);
  /// States that no samples follow: a suspicion that is certain enough becomes a leak, as at the end of a recording.
  void end();

  /// False while the capacity of any of its GPUs is unknown.
  [[nodiscard]] bool knows_capacities() const;
  [[nodiscard]] std::vector<GpuVerdict> verdicts() const;
  /// vramtrack.analysis.v1, one line per series; `from` is used in place of the files.
  [[nodiscard]] std::string json(const std::string& from) const;

 private:
  struct Feed;
  struct State;
  void feed(std::vector<Feed>& feeds);

  std::unique_ptr<State> state_;
};

}  // namespace vramtrack::fleet
