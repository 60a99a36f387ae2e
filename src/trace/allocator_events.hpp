// What the allocators of TensorFlow and XLA did while a profiler recorded them, and the Snapshot that follows from it:
// the common part of xplane.cpp and memory_profile.cpp. docs/formats/xprof.md has the rules.
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

/// Allocators of one file. Real programs have fewer than ten; more are an error.
inline constexpr std::size_t kMostAllocators = 4096;

struct AllocatorEvent {
  std::int64_t time_ns = 0;
  std::uint32_t time_ps = 0;    ///< beyond time_ns, below 1000
  std::uint32_t allocator = 0;  ///< index into AllocatorEvents::names
  bool is_alloc = true;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;               ///< of the block, as the allocator rounded it
  std::optional<std::uint64_t> in_use_bytes;  ///< what the allocator held after the event, by its own count
  StackId stack = kNoStack;                   ///< of an allocation
  StringId label = kNoText;                   ///< of an allocation: type and shape
};

/// Blocks that were live together, where the events are not known.
struct HeldBlocks {
  std::uint32_t allocator = 0;
  std::uint64_t size_bytes = 0;  ///< of each
  std::uint64_t count = 1;
  StackId stack = kNoStack;
  StringId label = kNoText;
};

struct AllocatorEvents {
  std::vector<std::string> names;             ///< of the allocators: "GPU_0_bfc"
  std::vector<std::uint64_t> lifetime_peaks;  ///< of each, in bytes, since the program began; 0: not known
  std::vector<AllocatorEvent> events;         ///< in any order
};

/// Whose memory an allocator hands out: a number alone is a device's, and so is the first number of a name; names with
/// "host" or "cpu" are of the host.
struct AllocatorPlace {
  bool is_host = false;
  std::uint32_t device = 0;
};
AllocatorPlace allocator_place(std::string_view name);

/// The operation, its region ("output", "temp"), the allocator: the innermost frame first, empty ones left out.
StackId allocation_stack(Symbols& symbols, std::string_view op, std::string_view region, std::string_view allocator);
/// "float[128,256]"; kNoText where neither is known.
StringId allocation_label(Symbols& symbols, std::string_view data_type, std::string_view shape);

/// The final blocks and the trace of each device. What was live before the first event follows from the allocators' own
/// counts and from the frees of what was never allocated. Where no allocator is of a device, those of the host stand
/// for device 0, and a note says so. Time O(n log n) of the events; memory some 100 bytes a live block, and 32 an event
/// with `keep_events`. Errors: sizes that no device has.
Result<Snapshot> snapshot_of_events(AllocatorEvents events, Symbols& symbols, bool keep_events);

/// One moment, as a heap profile. Errors: as above.
Result<Snapshot> snapshot_of_blocks(const std::vector<std::string>& names, const std::vector<HeldBlocks>& held);

}  // namespace vramtrack::trace
