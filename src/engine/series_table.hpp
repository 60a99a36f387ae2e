// SeriesTable: the engine's series, by id, by process and by device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/driver_share.hpp"
#include "engine/remainder.hpp"
#include "engine/series_state.hpp"

namespace vramtrack {

/// What the series of one device have in common.
struct DeviceState {
  SeriesState* used = nullptr;          ///< its device_used series, once that has a sample
  SeriesState* reserved = nullptr;      ///< its device_reserved series, likewise
  SeriesState* unattributed = nullptr;  ///< its device_unattributed series, likewise
  Remainder remainder;                  ///< what that is made by
  std::optional<Timestamp> derived;     ///< the last tick in which that was made, or could not be
  std::set<SeriesId> leaking;           ///< of its processes and its remainder: whose alerts stand
  std::optional<double> capacity_bytes;
  std::map<SeriesId, SeriesState*> series;  ///< all of the device, its processes' too

  /// What the driver keeps for itself: a device that has no more in use is idle.
  [[nodiscard]] double idle_bytes() const {
    return driver_share_bytes(capacity_bytes ? std::optional(static_cast<std::uint64_t>(*capacity_bytes))
                                             : std::optional<std::uint64_t>());
  }
};

/// Owns the series. What an event or a change of the catalog concerns is found through an index, so that it costs the
/// same beside ten series and beside ten thousand; visits() counts what was looked at, for the test that holds this.
///
///   id       -> series
///   process  -> its series, by id (one a device and metric)
///   device   -> DeviceState -> its series, by id
class SeriesTable {
 public:
  /// Null: not seen, or forgotten.
  [[nodiscard]] SeriesState* find(SeriesId id) const {
    return index_of(id) < series_.size() ? series_[index_of(id)].get() : nullptr;
  }
  /// Made where there is none, from what `catalog` knows. O(log of the device's series).
  SeriesState& get(SeriesId id, const Catalog& catalog, const Config& config, const IgnorePatterns& ignore);
  /// The series of a process that ended and is listed again, by its pid: it begins anew, its alerts are kept. Pointers
  /// to the series end here.
  SeriesState& begin_anew(SeriesId id, const Catalog& catalog, const Config& config, const IgnorePatterns& ignore);
  /// Pointers to the series end here. An unknown id is left alone. O(log of the device's series).
  void forget(SeriesId id);

  /// The state of the device of a series in this table.
  [[nodiscard]] const DeviceState& device_of(const SeriesState& series) const { return *series.device; }
  /// Whether MIG instances share the device's memory: their processes are not the device's.
  [[nodiscard]] bool has_instances(const DeviceKey& device) const { return parents_.contains(device); }
  /// Takes over the capacity that `device` has. Nothing where no series of it is here. O(1).
  void refresh(const DeviceInfo& device);

  /// visit(SeriesState&) in order of ids. O(visited).
  template <class Visit>
  void for_process(const ProcessKey& process, Visit visit) const {
    if (const auto it = processes_.find(process); it != processes_.end())
      for (const auto& [id, series] : it->second) visit(counted(*series));
  }
  template <class Visit>
  void for_device(const DeviceKey& device, Visit visit) const {
    if (const auto it = devices_.find(device); it != devices_.end())
      for (const auto& [id, series] : it->second.series) visit(counted(*series));
  }
  /// Of all devices of `host`. O(devices + visited).
  template <class Visit>
  void for_host(const std::string& host, Visit visit) {
    for (auto& [key, device] : devices_)
      if (key.host == host)
        for (const auto& [id, series] : device.series) visit(counted(*series));
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& series : series_)
      if (series) visit(counted(*series));
  }

  /// Ids seen, forgotten ones too.
  [[nodiscard]] std::size_t size() const { return series_.size(); }
  /// Series that the for_ functions have handed out so far.
  [[nodiscard]] std::uint64_t visits() const { return visits_; }

 private:
  SeriesState& counted(SeriesState& series) const {
    ++visits_;
    return series;
  }

  std::vector<std::unique_ptr<SeriesState>> series_;  ///< by SeriesId
  std::unordered_map<ProcessKey, std::map<SeriesId, SeriesState*>, KeyHash> processes_;
  std::unordered_map<DeviceKey, DeviceState, KeyHash> devices_;  ///< nodes: a DeviceState never moves
  std::unordered_set<DeviceKey, KeyHash> parents_;               ///< of MIG instances
  mutable std::uint64_t visits_ = 0;
};

}  // namespace vramtrack
