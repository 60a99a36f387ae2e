#include "trace/compare.hpp"

#include <algorithm>
#include <tuple>

#include "core/order.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace {
namespace {

/// Rank by which devices are reported: the most urgent first.
int urgency(const SnapshotGrowth& growth) {
  if (!growth.is_comparable) return 3;
  switch (growth.condition) {
    case Condition::leak:
      return growth.is_certain ? 5 : 4;
    case Condition::steady:
      return 0;
    case Condition::cache:
      return 1;
    default:
      return 2;
  }
}

std::vector<DeviceGrowth> most_urgent_first(std::vector<DeviceGrowth> all) {
  order(all, [](const DeviceGrowth& a, const DeviceGrowth& b) {
    return std::tuple(urgency(a.growth), a.growth.leaking_bytes) >
           std::tuple(urgency(b.growth), b.growth.leaking_bytes);
  });
  return all;
}

}  // namespace

std::set<std::uint32_t> devices_of(std::span<const Snapshot> snapshots) {
  std::set<std::uint32_t> devices;
  for (const Snapshot& snapshot : snapshots)
    for (const std::uint32_t device : devices_of(snapshot)) devices.insert(device);
  return devices;
}

std::vector<DeviceGrowth> compare_devices(std::span<const Snapshot> snapshots, GrowthOptions options) {
  std::set<std::uint32_t> devices = devices_of(snapshots);
  if (options.device) devices = {*options.device};
  std::vector<DeviceGrowth> all;
  for (const std::uint32_t device : devices) {
    options.device = device;
    all.push_back({device, growth_of(snapshots, options)});
  }
  if (all.empty()) all.push_back({std::nullopt, growth_of(snapshots, options)});
  return most_urgent_first(std::move(all));
}

std::vector<DeviceGrowth> compare_devices(std::span<const StreamReplay> streams) {
  std::vector<DeviceGrowth> all;
  for (const StreamReplay& stream : streams)
    if (SnapshotGrowth growth = stream.growth(); !growth.usage.empty())
      all.push_back({stream.device(), std::move(growth)});
  return most_urgent_first(std::move(all));
}

}  // namespace vramtrack::trace
