// Usage: how an allocator's reserved memory is used, by device, pool and stream, with the figures of fragmentation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/snapshot.hpp"

namespace vramtrack::trace {

/// The usage of some segments. reserved = requested + internal + pending + inactive, always.
///
///   reserved |--------------------------------------------------------------|
///            | requested | internal | pending |          inactive           |
///            |      allocated       |         |  releasable  |    pinned    |
struct Usage {
  std::uint64_t reserved_bytes = 0;            ///< from the driver: what nvidia-smi shows, less contexts and libraries
  std::uint64_t allocated_bytes = 0;           ///< blocks the program holds, as rounded by the allocator
  std::uint64_t requested_bytes = 0;           ///< bytes that the program requested
  std::uint64_t pending_free_bytes = 0;        ///< freed, but held until a stream is done with it
  std::uint64_t inactive_bytes = 0;            ///< cached: both external fragmentation and plain cache
  std::uint64_t releasable_bytes = 0;          ///< of inactive: empty_cache() would return it to the driver
  std::uint64_t private_releasable_bytes = 0;  ///< of releasable: in private pools, once these are deleted
  std::uint64_t pinned_bytes = 0;              ///< of inactive: a live block in the same segment (or page) holds it
  std::uint64_t largest_free_bytes = 0;        ///< largest inactive run: available without a request to the driver
  std::uint64_t largest_pinned_bytes = 0;      ///< of pinned: the largest run, or its part in pages with live blocks
  std::uint64_t unaccounted_bytes = 0;         ///< in segments with blocks that do not add up (reduced files)
  std::uint64_t segment_count = 0;
  std::uint64_t live_block_count = 0;
  std::uint64_t free_block_count = 0;

  [[nodiscard]] std::uint64_t internal_bytes() const { return allocated_bytes - requested_bytes; }
  [[nodiscard]] std::uint64_t active_bytes() const { return allocated_bytes + pending_free_bytes; }
  /// requested / reserved; 1 if nothing is reserved.
  [[nodiscard]] double utilisation() const;
  /// 1 - largest free run / total free: 0 is a single piece, near 1 is many small pieces.
  [[nodiscard]] double scatter() const;
  /// The same for pinned memory.
  [[nodiscard]] double pinned_scatter() const;
  Usage& operator+=(const Usage& other);
};

/// Segments of one pool, kind and stream: blocks are never shared between two of these.
struct PoolUsage {
  PoolId pool{};
  bool is_large = true;
  bool is_expandable = false;
  std::int64_t stream = 0;
  Usage usage;
};

struct DeviceUsage {
  std::uint32_t device = 0;
  Usage total;
  std::vector<PoolUsage> pools;  ///< the largest first
};

/// The devices with segments, in order.
std::vector<std::uint32_t> devices_of(const Snapshot& snapshot);
/// Those, and the devices with only a trace.
std::vector<std::uint32_t> known_devices(const Snapshot& snapshot);
/// The usage by device index; devices with neither segments nor events are left out. One pass over segments and blocks.
std::vector<DeviceUsage> usage_of(const Snapshot& snapshot);
/// The usage of all devices together, or of one of them.
Usage total_usage(const Snapshot& snapshot, std::optional<std::uint32_t> device = {});

}  // namespace vramtrack::trace
