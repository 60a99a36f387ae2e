// What the engine keeps for one device: its series, its runs and how they ended, its readings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/driver_share.hpp"
#include "detect/attribution.hpp"
#include "engine/device_runs.hpp"
#include "engine/remainder.hpp"
#include "engine/series_state.hpp"

namespace vramtrack {

/// A report that a program ended, without its pid.
struct EndReport {
  Timestamp time;
  std::string text;      ///< for people: who reported it, and how
  bool by_host = false;  ///< the host ended it because its memory had run out
};

/// The state that the series of one device share. Its own memory is that of `used`.
struct DeviceState {
  SeriesState* used = nullptr;          ///< its device_used series, once it has a sample
  SeriesState* reserved = nullptr;      ///< its device_reserved series, likewise
  SeriesState* unattributed = nullptr;  ///< its device_unattributed series, likewise
  /// The series of a framework's allocator that is judged in place of `used`, where nothing else is known of the
  /// device: allocated memory, else reserved memory, of the only program that reports it. Else null.
  SeriesState* stand_in = nullptr;
  std::map<SeriesId, SeriesState*> series;  ///< all series of the device, including its processes'
  std::optional<double> capacity_bytes;
  bool shares_host_memory = false;  ///< see DeviceInfo
  /// The level at which the host's memory ends for the device, as of the last look: its capacity may be higher.
  std::optional<double> host_end_bytes;

  Remainder remainder;               ///< the source of `unattributed`
  std::optional<Timestamp> derived;  ///< the last tick in which that series was made, or could not be
  std::set<SeriesId> leaking;        ///< its processes, and its remainder, whose alerts stand

  std::optional<Pile> pile;                 ///< while its total rises like a leak
  std::optional<Timestamp> total_reviewed;  ///< when that was last examined, and who explains the rise

  std::set<SeriesId> living;  ///< its processes that have not ended

  DeviceRuns runs;
  std::optional<End> last_end;                      ///< of a process that was the device's run: see Verdict::end
  std::uint64_t floor_since_end = 0;                ///< the lowest reading since then, in bytes
  std::uint64_t samples_since_end = 0;              ///< number of readings since then
  std::uint64_t released_below_bytes = 0;           ///< below this, the memory of that process has been freed
  std::optional<Timestamp> process_ended;           ///< when a process on it last ended
  std::optional<Timestamp> last_fall;               ///< when a process other than its grower last released memory
  std::optional<Timestamp> reported_out_of_memory;  ///< when a program last reported it
  std::optional<EndReport> end_report;              ///< the last one that has not explained an end yet

  std::optional<double> utilisation_ratio;
  DeviceGauges gauges;
  std::optional<DeviceHealth> health;
  std::optional<LastXid> last_xid;

  /// The memory that the driver keeps for itself: a device with no more than that in use is idle.
  [[nodiscard]] double idle_bytes() const {
    return driver_share_bytes(capacity_bytes ? std::optional(static_cast<std::uint64_t>(*capacity_bytes))
                                             : std::optional<std::uint64_t>());
  }
  /// The series by which the device is judged; null if there is none.
  [[nodiscard]] SeriesState* total() const { return used != nullptr ? used : stand_in; }
  /// Chooses `stand_in` again; called when a series has come or gone. The state of the earlier one is forgotten.
  void choose_stand_in();
  /// Whether the memory of the process that ended last is still in use: a driver may free it long after the end, or
  /// never. `no_growth_bytes`: a smaller rise does not count. REQUIRES: total().
  [[nodiscard]] bool held_since_end(std::uint64_t no_growth_bytes) const {
    return last_end && floor_since_end > released_below_bytes &&
           total()->last_bytes <= last_end->used_bytes + no_growth_bytes;
  }
};

}  // namespace vramtrack
