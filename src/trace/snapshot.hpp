// Snapshot: an allocator's memory at one moment (segments and their blocks) and the events that led there, modelled on
// PyTorch's, the richest available. Plain data; names are ids in the Symbols it was read into.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/category_name.hpp"
#include "trace/event.hpp"
#include "trace/origin.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

enum class BlockState : std::uint8_t {
  active,        ///< the program holds it
  pending_free,  ///< freed, but a stream may still use it
  inactive,      ///< cached by the allocator
};

struct Block {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t requested_bytes = 0;  ///< what the program requested; meaningless for an inactive block
  StackId stack = kNoStack;
  BlockState state : 8 = BlockState::inactive;
  std::uint32_t origin : 24 = 0;  ///< of its allocation, if labelled in the trace; index into Snapshot::origins
};
static_assert(sizeof(Block) == 32);

struct Segment {
  std::uint32_t device = 0;
  bool is_large = true;
  bool is_expandable = false;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;  ///< size as allocated from the driver
  std::int64_t stream = 0;
  PoolId pool{};
  StackId stack = kNoStack;
  std::size_t first_block = 0;  ///< index into Snapshot::blocks
  std::size_t block_count = 0;
};

/// The events of one device, oldest first; a ring, so the oldest may be gone, and frees without an alloc are normal.
struct DeviceTrace {
  std::uint32_t device = 0;
  Paged<AllocEvent> events;  ///< empty if the reader only counts

  // Counted while reading, whether events are kept or not.
  std::array<std::uint64_t, kActionCount> counts{};
  std::uint64_t event_count = 0;
  std::int64_t first_time_us = kNoTime;
  std::int64_t last_time_us = kNoTime;
  std::int64_t net_bytes = 0;       ///< sum of the requested bytes of all its allocs and frees
  std::int64_t peak_net_bytes = 0;  ///< the highest value of that sum, which starts at 0
  std::uint64_t peak_event = 0;     ///< the event after which the sum had this peak
};

/// The configuration of the caching allocator (PyTorch 2.2 and newer).
struct AllocatorSettings {
  std::string text;  ///< PYTORCH_CUDA_ALLOC_CONF as set
  std::optional<bool> expandable_segments;
  std::optional<std::int64_t> max_split_bytes;  ///< -1: no limit
  std::optional<double> garbage_collection_threshold;
};

/// A span that the program named (record_function, optimizer steps, DataLoader).
struct Annotation {
  std::int64_t time_us = kNoTime;
  StringId name{};
  std::uint32_t device = 0;
  bool is_start = true;
};

/// Text that the program attached to a live block after its allocation (torch.cuda.memory._annotate_tensor).
struct BlockAnnotation {
  std::size_t block = 0;  ///< index into Snapshot::blocks
  StringId text = kNoText;
};

/// What a live block is, as reported by the program itself (vramtrack.categorize(), vramtrack.Watch).
struct BlockCategory {
  std::size_t block = 0;  ///< index into Snapshot::blocks
  Category category = Category::unknown;
  StringId name = kNoText;  ///< such as "Net.layers.3.weight"
};

/// The program's record of a failed allocation, for recorders that keep no trace (written by vramtrack.Watch).
struct OomNote {
  std::uint32_t device = 0;
  std::uint64_t asked_bytes = 0;
  std::uint64_t device_free_bytes = 0;
  std::optional<std::uint64_t> device_total_bytes;
  std::optional<std::uint64_t> allowed_bytes;  ///< what the process may use if a memory fraction is set
};

/// What a device's allocators held at a moment, if nothing else is known about it.
struct UsageSample {
  std::uint32_t device = 0;
  std::int64_t time_us = kNoTime;
  std::int64_t live_bytes = 0;
};

struct Snapshot {
  std::string file;  ///< as given by the reader
  std::vector<Segment> segments;
  std::vector<Block> blocks;  ///< by segment, in address order within it
  std::vector<DeviceTrace> traces;
  std::vector<Segment> host_segments;  ///< pinned host memory (2.12 and newer); their blocks are in `blocks`, too
  std::vector<DeviceTrace> host_traces;
  std::optional<AllocatorSettings> settings;
  std::vector<Annotation> annotations;
  std::vector<BlockAnnotation> block_annotations;  ///< by block
  std::vector<BlockCategory> block_categories;     ///< by block
  std::optional<OomNote> oom;
  std::vector<UsageSample> samples;  ///< heap profiles only: totals before and after, in order of time
  Origins origins;                   ///< the first has no label, the common pool and the default stream
  std::vector<std::string> notes;    ///< notes for the user about the reading

  std::uint64_t file_bytes = 0;  ///< number of bytes read, decompressed
  bool is_bare_list = false;     ///< an old or cut-down file: segments only
  bool is_event_stream = false;  ///< for a plain stream: its events left these blocks, each in a separate segment
  bool is_heap_profile = false;  ///< only live memory: without events, addresses and cached memory
  bool is_host = false;          ///< segments and traces are those of pinned host memory: see swap_host()

  Snapshot() { origins.intern({}); }

  /// Exchanges the devices' memory with pinned host memory, so that every analysis of one works for the other.
  void swap_host() {
    segments.swap(host_segments);
    traces.swap(host_traces);
    is_host = !is_host;
  }

  [[nodiscard]] bool has_host_memory() const {
    if (!host_segments.empty()) return true;
    return !host_traces.empty() && host_traces.front().event_count > 0;
  }
  [[nodiscard]] const DeviceTrace* trace_of(std::uint32_t device) const {
    for (const DeviceTrace& trace : traces)
      if (trace.device == device) return &trace;
    return nullptr;
  }
};

/// During its lifetime, the snapshot describes its pinned host memory.
class HostMemory {
 public:
  explicit HostMemory(Snapshot& snapshot) : snapshot_(snapshot) { snapshot_.swap_host(); }
  ~HostMemory() { snapshot_.swap_host(); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

 private:
  Snapshot& snapshot_;
};

/// How a trace is read.
struct ReadOptions {
  bool keep_events = true;  ///< false: DeviceTrace::events stays empty, only counts are filled; a third of the memory
};

}  // namespace vramtrack::trace
