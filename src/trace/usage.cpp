#include "trace/usage.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/order.hpp"
#include "core/units.hpp"

namespace vramtrack::trace {
namespace {

/// The pages in which expandable segments are mapped (PyTorch: kSmallBuffer and kLargeBuffer).
std::uint64_t page_bytes(const Segment& segment) {
  return segment.is_large ? 20 * kBytesPerMiB : 2 * kBytesPerMiB;
}

Usage usage_of_segment(const Snapshot& snapshot, const Segment& segment) {
  Usage usage;
  usage.reserved_bytes = segment.size_bytes;
  usage.segment_count = 1;
  std::uint64_t blocks_bytes = 0;
  std::uint64_t run_bytes = 0;  // bytes of adjacent free blocks
  std::uint64_t run_address = segment.address;
  std::uint64_t whole_pages_bytes = 0;
  std::uint64_t largest_pinned_bytes = 0;  // used if the segment has a live block
  const auto end_run = [&] {
    usage.largest_free_bytes = std::max(usage.largest_free_bytes, run_bytes);
    std::uint64_t pinned_bytes = run_bytes;
    if (segment.is_expandable && run_bytes > 0) {
      const std::uint64_t page = page_bytes(segment);
      const std::uint64_t begin = run_address - segment.address;
      const std::uint64_t first = (begin + page - 1) / page * page;
      const std::uint64_t last = (begin + run_bytes) / page * page;
      if (last > first) {
        whole_pages_bytes += last - first;
        pinned_bytes = std::max(first - begin, begin + run_bytes - last);
      }
    }
    largest_pinned_bytes = std::max(largest_pinned_bytes, pinned_bytes);
    run_bytes = 0;
  };
  for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
    const Block& block = snapshot.blocks[i];
    if (block.state == BlockState::inactive) {
      if (run_bytes == 0) run_address = segment.address + blocks_bytes;
      run_bytes += block.size_bytes;
      usage.inactive_bytes += block.size_bytes;
      ++usage.free_block_count;
    } else {
      end_run();
      if (block.state == BlockState::active) {
        usage.allocated_bytes += block.size_bytes;
        usage.requested_bytes += block.requested_bytes;
        ++usage.live_block_count;
      } else {
        usage.pending_free_bytes += block.size_bytes;
      }
    }
    blocks_bytes += block.size_bytes;
  }
  end_run();
  if (usage.active_bytes() == 0)
    usage.releasable_bytes = usage.inactive_bytes;
  else
    usage.releasable_bytes = whole_pages_bytes;
  if (segment.pool != PoolId{}) usage.private_releasable_bytes = usage.releasable_bytes;
  usage.pinned_bytes = usage.inactive_bytes - usage.releasable_bytes;
  if (usage.active_bytes() > 0) usage.largest_pinned_bytes = largest_pinned_bytes;
  if (segment.size_bytes > blocks_bytes) usage.unaccounted_bytes = segment.size_bytes - blocks_bytes;
  if (segment.size_bytes < blocks_bytes) usage.reserved_bytes = blocks_bytes;
  return usage;
}

}  // namespace

std::vector<DeviceUsage> usage_of(const Snapshot& snapshot) {
  using Key = std::tuple<std::uint32_t, PoolId, bool, std::int64_t>;
  std::map<Key, PoolUsage> pools;
  std::map<std::uint32_t, DeviceUsage> devices;
  for (const DeviceTrace& trace : snapshot.traces)
    if (trace.event_count > 0) devices[trace.device].device = trace.device;
  for (const Segment& segment : snapshot.segments) {
    const Usage usage = usage_of_segment(snapshot, segment);
    PoolUsage& pool = pools[{segment.device, segment.pool, segment.is_large, segment.stream}];
    pool.pool = segment.pool;
    pool.is_large = segment.is_large;
    pool.is_expandable = pool.is_expandable || segment.is_expandable;
    pool.stream = segment.stream;
    pool.usage += usage;
    DeviceUsage& device = devices[segment.device];
    device.device = segment.device;
    device.total += usage;
  }
  for (auto& [key, pool] : pools) devices[std::get<0>(key)].pools.push_back(pool);
  std::vector<DeviceUsage> out;
  for (auto& [index, device] : devices) {
    order(device.pools,
          [](const PoolUsage& a, const PoolUsage& b) { return a.usage.reserved_bytes > b.usage.reserved_bytes; });
    out.push_back(std::move(device));
  }
  return out;
}

double Usage::utilisation() const {
  return reserved_bytes == 0 ? 1 : static_cast<double>(requested_bytes) / static_cast<double>(reserved_bytes);
}

double Usage::scatter() const {
  return inactive_bytes == 0 ? 0 : 1 - static_cast<double>(largest_free_bytes) / static_cast<double>(inactive_bytes);
}

double Usage::pinned_scatter() const {
  return pinned_bytes == 0 ? 0 : 1 - static_cast<double>(largest_pinned_bytes) / static_cast<double>(pinned_bytes);
}

Usage& Usage::operator+=(const Usage& other) {
  reserved_bytes += other.reserved_bytes;
  allocated_bytes += other.allocated_bytes;
  requested_bytes += other.requested_bytes;
  pending_free_bytes += other.pending_free_bytes;
  inactive_bytes += other.inactive_bytes;
  releasable_bytes += other.releasable_bytes;
  private_releasable_bytes += other.private_releasable_bytes;
  pinned_bytes += other.pinned_bytes;
  largest_free_bytes = std::max(largest_free_bytes, other.largest_free_bytes);
  largest_pinned_bytes = std::max(largest_pinned_bytes, other.largest_pinned_bytes);
  unaccounted_bytes += other.unaccounted_bytes;
  segment_count += other.segment_count;
  live_block_count += other.live_block_count;
  free_block_count += other.free_block_count;
  return *this;
}

std::vector<std::uint32_t> devices_of(const Snapshot& snapshot) {
  std::set<std::uint32_t> out;
  for (const Segment& segment : snapshot.segments) out.insert(segment.device);
  return {out.begin(), out.end()};
}

std::vector<std::uint32_t> known_devices(const Snapshot& snapshot) {
  std::vector<std::uint32_t> known = devices_of(snapshot);
  for (const DeviceTrace& trace : snapshot.traces)
    if (trace.event_count > 0) known.push_back(trace.device);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

Usage total_usage(const Snapshot& snapshot, std::optional<std::uint32_t> device) {
  Usage total;
  for (const Segment& segment : snapshot.segments)
    if (!device || segment.device == *device) total += usage_of_segment(snapshot, segment);
  return total;
}

}  // namespace vramtrack::trace
