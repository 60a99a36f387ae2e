// Processes whose device memory ran out, which caught that, and which still hold what they had: programs that run out
// after them do so because of that.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/sample.hpp"
#include "core/wall.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {

/// Not thread-safe.
class StillHolding {
 public:
  /// REQUIRES: an out_of_memory. One that names no process may be about any. O(series of the process).
  void take(const Event& event, const SeriesTable& table);
  /// For a process_used series that has not ended, from a minute after its memory ran out, while it holds at least half
  /// of what it held then. O(series of the device).
  [[nodiscard]] std::optional<StillHolds> of(const SeriesState& process) const;
  /// For a process that ran out itself: ", while pid 42, whose memory had run out at ..., held 21.0 GiB"; empty if no
  /// other process of its device still held memory.
  [[nodiscard]] std::string left_for(const SeriesState& process, const Catalog& catalog) const;
  void forget(SeriesId process) { known_.erase(process); }

 private:
  struct Known {
    Timestamp ran_out;
    std::uint64_t held_bytes = 0;
  };
  std::unordered_map<SeriesId, Known> known_;
};

}  // namespace vramtrack
