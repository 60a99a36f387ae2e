// Alerts about memory that was not released after its process had ended. They begin and end here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/config.hpp"
#include "core/verdict.hpp"
#include "engine/announce.hpp"
#include "engine/remainder.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {

/// One per engine. An alert belongs to the series of the process that ended, so that each is reported, silenced and
/// ended separately. Causal and deterministic. O(what is not released) per tick. Not thread-safe.
class UnreleasedMemory {
 public:
  /// Receives one change of an alert.

  /// All must outlive this object.
  UnreleasedMemory(const Config& config, const Catalog& catalog) : config_(config), catalog_(catalog) {}

  /// The device's remainder has a value at `time`; `rest` is the series that shows it. Memory below stall.min-memory-mb
  /// is ignored, as for stalls.
  void take(const SeriesState& rest, Timestamp time, const Announce& announce);
  /// The series is forgotten.
  void forget(SeriesId series);
  /// An alert that has stood since before this engine began: it stands until half of the memory that no process holds
  /// is released. Returns whether one stands now.
  bool adopt(const Alert& alert);

  /// The memory that has not been released so far on the device whose remainder `rest` shows.
  [[nodiscard]] double bytes_of(SeriesId rest) const;
  /// The alerts raised for the process, in order; nullptr if there are none.
  [[nodiscard]] const std::vector<Alert>* alerts_of(SeriesId process) const { return find_alerts(alerts_, process); }

 private:
  struct Standing {
    SeriesId process{};
    bool is_adopted = false;
    std::optional<std::uint64_t> rest_bytes;  ///< adopted: what no process held when that was first read
  };
  [[nodiscard]] bool stands(SeriesId process) const;
  void raise(const Remainder::Unreleased& memory, Timestamp time, const Announce& announce);
  void clear(Alert& alert, Timestamp time, const Announce& announce) const;
  [[nodiscard]] std::string because(const Remainder::Unreleased& memory, Timestamp time) const;

  const Config& config_;
  const Catalog& catalog_;
  std::vector<Standing> standing_;
  AlertsBySeries alerts_;                       ///< by process
  std::unordered_map<SeriesId, double> bytes_;  ///< by the series of the remainder
};

}  // namespace vramtrack
