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

std::vector<StreamReplay> replay_events(const Snapshot& snapshot, Symbols& symbols) {
  const FrameId frame = symbols.intern(Frame{symbols.intern("(allocated before the trace)"), kNoText, 0});
  const StackId before_trace = symbols.intern({&frame, 1});
  std::vector<StreamReplay> out;
  for (const DeviceTrace& trace : snapshot.traces) {
    LiveSet open;
    std::vector<AllocEvent> before;
    const auto add = [&](std::uint64_t address, std::uint64_t size_bytes) {
      before.push_back({address, size_bytes, trace.first_time_us, before_trace, 0, Action::alloc});
    };
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const AllocEvent& event = trace.events[i];
      if (event.action == Action::alloc) open.put(event.address, event.size_bytes, event.stack, false);
      if (event.action != Action::free_completed) continue;
      if (open.find(event.address) != nullptr)
        open.erase(event.address);
      else
        add(event.address, event.size_bytes);
    }
    for (const Segment& segment : snapshot.segments) {
      if (segment.device != trace.device) continue;
      for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i)
        if (const Block& block = snapshot.blocks[i]; open.find(block.address) == nullptr)
          add(block.address, block.size_bytes);
    }
    StreamReplay replay(trace.device);
    bool is_valid = true;
    const auto take = [&](const AllocEvent& event) { is_valid = is_valid && replay.take(event).has_value(); };
    for (const AllocEvent& event : before) take(event);
    for (std::size_t i = 0; i < trace.events.size(); ++i)
      if (trace.events[i].action != Action::free_requested) take(trace.events[i]);
    if (is_valid) out.push_back(std::move(replay));
  }
  return out;
}

}  // namespace vramtrack::trace
