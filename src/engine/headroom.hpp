// Headroom of the engine's series, and the alerts about it, which are raised only on request (alert.headroom).
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/headroom.hpp"
#include "core/verdict.hpp"
#include "engine/announce.hpp"
#include "engine/run_memory.hpp"
#include "engine/series_state.hpp"
#include "engine/series_table.hpp"
#include "engine/walls.hpp"

namespace vramtrack {

/// For a live process, or the total of a device, if the capacity is known; else nullopt. The possible need of a process
/// ends at the nearest of its device and its walls. `runs`: null if no program is compared with its earlier runs.
/// A need that exceeds the rest by less than `tolerance_bytes` fits. O(processes of the device), and as Walls::nearest.
std::optional<Headroom> headroom_of(const SeriesState& series, const SeriesTable& table, const Walls& walls,
                                    const RunMemory* runs, double tolerance_bytes);

/// The alerts: one per process, while its need does not fit. They begin and end here. Causal and deterministic.
class HeadroomAlerts {
 public:
  /// What is known of the process at `time`. `ends_by`: the wall that ends it, for people; empty: its device does.
  /// O(1).
  void take(SeriesId process, const std::optional<Headroom>& known, const Scale& scale, const std::string& ends_by,
            Timestamp time, const Announce& announce);
  /// The process has ended.
  void end(SeriesId process, Timestamp time, const Announce& announce);
  void forget(SeriesId process) { known_.erase(process); }
  /// An alert that has stood since before this engine began. Returns whether
  /// one stands now.
  bool adopt(const Alert& alert);

  /// The alerts raised for the process, in order; nullptr if there are none.
  [[nodiscard]] const std::vector<Alert>* alerts_of(SeriesId process) const;

 private:
  struct Known {
    std::optional<Timestamp> since;  ///< when it ceased to fit
    std::vector<Alert> alerts;
  };
  static void clear(Alert& alert, AlertEnd how, std::string reason, Timestamp time, const Announce& announce);

  std::unordered_map<SeriesId, Known> known_;
};

}  // namespace vramtrack
