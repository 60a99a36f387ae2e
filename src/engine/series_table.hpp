// SeriesTable: the engine's series, by id, by process and by device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/device_state.hpp"
#include "engine/series_state.hpp"

namespace vramtrack {

/// Owns the series. Series affected by an event or a change of the catalog are found through an index, so that this
/// costs the same with ten series as with ten thousand; visits() counts the series visited, so that tests can check it.
///
///   id       -> series
///   process  -> its series, by id (one per device and metric)
///   device   -> DeviceState -> its series, by id
class SeriesTable {
 public:
  /// Null if not seen yet, or forgotten.
  [[nodiscard]] SeriesState* find(SeriesId id) const {
    return index_of(id) < series_.size() ? series_[index_of(id)].get() : nullptr;
  }
  /// Created if missing, from what `catalog` knows. O(log of the device's series).
  SeriesState& get(SeriesId id, const Catalog& catalog, const Config& config, const IgnorePatterns& ignore);
  /// The series of a process that ended and is listed again, found by its pid: it starts over, but its alerts are kept.
  /// Pointers to the series become invalid.
  SeriesState& begin_anew(SeriesId id, const Catalog& catalog, const Config& config, const IgnorePatterns& ignore);
  /// Pointers to the series become invalid. An unknown id is ignored. O(log of the device's series).
  void forget(SeriesId id);

  /// Null if there is no series of it here.
  [[nodiscard]] DeviceState* find(const DeviceKey& device) {
    const auto it = devices_.find(device);
    return it == devices_.end() ? nullptr : &it->second;
  }
  /// The state of the device of a series in this table.
  [[nodiscard]] const DeviceState& device_of(const SeriesState& series) const { return *series.device; }
  /// Whether MIG instances share the device's memory: their processes do not count as the device's.
  [[nodiscard]] bool has_instances(const DeviceKey& device) const { return parents_.contains(device); }
  /// Takes over the capacity of `device`. Does nothing if no series of it is here. O(1).
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
  /// The same for all devices of `host`. O(devices + visited).
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

  /// Number of ids seen, including forgotten ones.
  [[nodiscard]] std::size_t size() const { return series_.size(); }
  /// Number of series that the for_ functions have visited so far.
  [[nodiscard]] std::uint64_t visits() const { return visits_; }

 private:
  SeriesState& counted(SeriesState& series) const {
    ++visits_;
    return series;
  }

  std::vector<std::unique_ptr<SeriesState>> series_;  ///< by SeriesId
  std::unordered_map<ProcessKey, std::map<SeriesId, SeriesState*>, KeyHash> processes_;
  std::unordered_map<DeviceKey, DeviceState, KeyHash> devices_;  ///< node-based: a DeviceState never moves
  std::unordered_set<DeviceKey, KeyHash> parents_;               ///< of MIG instances
  mutable std::uint64_t visits_ = 0;
};

}  // namespace vramtrack
