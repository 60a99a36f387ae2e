// The host memory that processes hold besides their devices' memory: how much, how much more they may take, who limits
// that, and which of them the kernel ended because it ran out.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/sample.hpp"
#include "core/view.hpp"
#include "engine/announce.hpp"
#include "engine/series_state.hpp"

namespace vramtrack {

/// Not thread-safe. Each call is O(1).
class HostMemoryOfProcesses {
 public:
  struct Known {
    HostHolding holding;            ///< `anonymous_bytes` is that of its series
    std::uint64_t limit_bytes = 0;  ///< where the memory of its cgroup, or of the machine, ends; 0: unknown
    std::string limit_name;         ///< who set it: "memory.max of /system.slice/a.service"; untrusted
    std::optional<Timestamp> killed;
  };

  /// REQUIRES: is_of_host(key.metric).
  void take(const SeriesKey& key, std::uint64_t bytes);
  /// REQUIRES: a capacity of kHostMemory with a pid.
  void take_limit(const Event& event);
  /// From here on, no limit is known.
  void lift_all();
  /// The kernel has ended it, or will be seen to have done so.
  void killed(const ProcessKey& process, Timestamp time) { known_[process].killed = time; }
  [[nodiscard]] bool was_killed(const ProcessKey& process) const;
  /// nullptr if nothing is known.
  [[nodiscard]] const Known* of(const ProcessKey& process) const;
  /// The level at which a host_anonymous series ends; nullopt: unknown.
  [[nodiscard]] std::optional<double> end_bytes(const SeriesState& series) const;
  void forget(const ProcessKey& process) { known_.erase(process); }

  /// An alert for the series of a process that the kernel ended at `time`: raised and already over.
  Alert& raise(const SeriesState& process, Timestamp time, const Scale& scale);
  /// In order; nullptr if there are none.
  [[nodiscard]] const std::vector<Alert>* alerts_of(SeriesId process) const { return find_alerts(alerts_, process); }
  void forget_alerts(SeriesId process) { alerts_.erase(process); }

 private:
  std::unordered_map<ProcessKey, Known, KeyHash> known_;
  AlertsBySeries alerts_;
};

}  // namespace vramtrack
