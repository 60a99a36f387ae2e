#include "engine/series_table.hpp"

#include <algorithm>

namespace vramtrack {
namespace {

std::optional<double> capacity_of(const DeviceInfo* device) {
  if (device == nullptr || !device->capacity_bytes) return std::nullopt;
  return static_cast<double>(*device->capacity_bytes);
}

}  // namespace

SeriesState& SeriesTable::get(SeriesId id, const Catalog& catalog, const Config& config, const IgnorePatterns& ignore) {
  const std::size_t index = index_of(id);
  if (index >= series_.size()) series_.resize(std::max(index + 1, catalog.size()));
  if (series_[index]) return *series_[index];
  series_[index] = std::make_unique<SeriesState>(id, catalog, config, ignore);
  SeriesState& series = *series_[index];
  const auto [it, is_new] = devices_.try_emplace(device_key(series.key));
  DeviceState& device = it->second;
  if (is_new) {
    const DeviceInfo* const info = catalog.device(it->first);
    device.capacity_bytes = capacity_of(info);
    device.shares_host_memory = info != nullptr && info->shares_host_memory;
    if (info != nullptr && !info->parent_id.empty()) parents_.insert({info->parent_id, info->host});
  }
  device.series.emplace(id, &series);
  if (series.key.metric == Metric::device_used) device.used = &series;
  if (series.key.metric == Metric::device_reserved) device.reserved = &series;
  if (series.key.metric == Metric::device_unattributed) device.unattributed = &series;
  series.device = &device;
  if (is_of_allocator(series.key.metric) || device.stand_in != nullptr) device.choose_stand_in();
  if (series.key.pid != 0) processes_[process_key(series.key)].emplace(id, &series);
  return series;
}

SeriesState& SeriesTable::begin_anew(SeriesId id, const Catalog& catalog, const Config& config,
                                     const IgnorePatterns& ignore) {
  std::vector<Alert> alerts = std::move(series_[index_of(id)]->alerts);
  std::vector<Alert> suspicions = std::move(series_[index_of(id)]->suspicions);
  forget(id);
  SeriesState& series = get(id, catalog, config, ignore);
  series.alerts = std::move(alerts);
  series.suspicions = std::move(suspicions);
  return series;
}

void SeriesTable::forget(SeriesId id) {
  const SeriesState* const series = find(id);
  if (series == nullptr) return;
  const auto device = devices_.find(device_key(series->key));
  if (device->second.used == series) device->second.used = nullptr;
  if (device->second.reserved == series) device->second.reserved = nullptr;
  if (device->second.unattributed == series) device->second.unattributed = nullptr;
  device->second.remainder.forget(id);
  device->second.leaking.erase(id);
  device->second.living.erase(id);
  device->second.series.erase(id);
  if (device->second.stand_in == series) device->second.choose_stand_in();
  if (device->second.series.empty()) devices_.erase(device);
  if (const auto process = processes_.find(process_key(series->key)); process != processes_.end()) {
    process->second.erase(id);
    if (process->second.empty()) processes_.erase(process);
  }
  series_[index_of(id)].reset();
}

void SeriesTable::refresh(const DeviceInfo& info) {
  if (!info.parent_id.empty()) parents_.insert({info.parent_id, info.host});
  const auto it = devices_.find({info.id, info.host});
  if (it == devices_.end()) return;
  it->second.capacity_bytes = capacity_of(&info);
  it->second.shares_host_memory = info.shares_host_memory;
}

}  // namespace vramtrack
