// The events of the allocators of TensorFlow and XLA while a profiler recorded them, and the Snapshot that follows: the
// common part of xplane.cpp and memory_profile.cpp. docs/formats/xprof.md has the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// The largest number of allocators in one file. Real programs have fewer than ten; more are an error.
inline constexpr std::size_t kMostAllocators = 4096;

struct AllocatorEvent {
  std::int64_t time_ns = 0;
  std::uint32_t time_ps = 0;    ///< added to time_ns; below 1000
  std::uint32_t allocator = 0;  ///< index into AllocatorEvents::names
  bool is_alloc = true;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;               ///< of the block, as rounded by the allocator
  std::optional<std::uint64_t> in_use_bytes;  ///< what the allocator held after the event, by its own count
  StackId stack = kNoStack;                   ///< of an allocation; a free has none
  StringId label = kNoText;                   ///< of an allocation: type and shape
};

/// Blocks that were live together, for files without events.
struct HeldBlocks {
  std::uint32_t allocator = 0;
  std::uint64_t size_bytes = 0;  ///< of each block
  std::uint64_t count = 1;
  StackId stack = kNoStack;
  StringId label = kNoText;
};

struct AllocatorEvents {
  std::vector<std::string> names;             ///< names of the allocators, such as "GPU_0_bfc"
  std::vector<std::uint64_t> lifetime_peaks;  ///< per allocator, in bytes, since the program began; 0: unknown
  std::vector<AllocatorEvent> events;         ///< in any order
};

/// The place of an allocator's memory. A number alone is a device, as is the first number in a name; names that contain
/// "host" or "cpu" belong to the host.
struct AllocatorPlace {
  bool is_host = false;
  std::uint32_t device = 0;
};
AllocatorPlace allocator_place(std::string_view name);

/// The operation, its region ("output", "temp") and the allocator as frames, innermost first, without empty ones.
StackId allocation_stack(Symbols& symbols, std::string_view op, std::string_view region, std::string_view allocator);
/// A label such as "float[128,256]"; kNoText if both are unknown.
StringId allocation_label(Symbols& symbols, std::string_view data_type, std::string_view shape);

/// The final blocks and the trace of each device. The memory live before the first event is derived from the
/// allocators' own counts and from frees without an allocation. If no allocator belongs to a device, those of the host
/// stand for device 0, with a note. Time: O(n log n) for n events; memory: some 100 bytes per live block, and 32 per
/// event with `keep_events`. Errors: sizes that no device has.
Result<Snapshot> snapshot_of_events(AllocatorEvents events, Symbols& symbols, bool keep_events);

/// A snapshot of one moment, as in a heap profile. Errors: as above.
Result<Snapshot> snapshot_of_blocks(const std::vector<std::string>& names, const std::vector<HeldBlocks>& held);

}  // namespace vramtrack::trace
