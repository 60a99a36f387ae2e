// The growth of memory on each device that several snapshots of one program show.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "trace/diff.hpp"
#include "trace/event_stream.hpp"
#include "trace/snapshot.hpp"

namespace vramtrack::trace {

struct DeviceGrowth {
  std::optional<std::uint32_t> device;  ///< none: no snapshot has a segment of any device
  SnapshotGrowth growth;
};

/// All devices for which any of the snapshots has segments.
std::set<std::uint32_t> devices_of(std::span<const Snapshot> snapshots);

/// growth_of() for each device separately, so that a device that releases memory does not hide a leaking one. Most
/// important first: a certain leak, a likely one, what cannot be compared, other growth, a cache, none. Never empty.
/// With options.device, only that one. REQUIRES: as for growth_of(); options.device_used_bytes only for a single
/// device.
std::vector<DeviceGrowth> compare_devices(std::span<const Snapshot> snapshots, GrowthOptions options);

/// The same for the devices of one stream, each between its quiet moments. Streams that are too short are left out, so
/// the result may be empty.
std::vector<DeviceGrowth> compare_devices(std::span<const StreamReplay> streams);

/// Replays the traces of one snapshot, device by device, like a stream. REQUIRES: what TraceFormatInfo::has_all_events
/// promises. Memory that was live before the first event is allocated before it.
std::vector<StreamReplay> replay_events(const Snapshot& snapshot, Symbols& symbols);

}  // namespace vramtrack::trace
