// The growth of each device that several snapshots of one program show.
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

/// All devices that any of the snapshots has segments of.
std::set<std::uint32_t> devices_of(std::span<const Snapshot> snapshots);

/// growth_of() for each device separately, so that a leaking one is not hidden by another that gives memory back; most
/// important first: a certain leak, a likely one, what cannot be compared, other growth, a cache, none. Never empty.
/// With options.device, only that one. REQUIRES: as growth_of(); options.device_used_bytes only if there is one
/// device.
std::vector<DeviceGrowth> compare_devices(std::span<const Snapshot> snapshots, GrowthOptions options);

/// The same for the devices of one stream, each between its quiet moments. Streams that are too short are left out: the
/// result may be empty.
std::vector<DeviceGrowth> compare_devices(std::span<const StreamReplay> streams);

/// The traces of one snapshot, device by device, as if they were read as a stream: REQUIRES what
/// TraceFormatInfo::has_all_events promises. What was live before the first event is allocated before it.
std::vector<StreamReplay> replay_events(const Snapshot& snapshot, Symbols& symbols);

}  // namespace vramtrack::trace
