// A small snapshot with one of everything, by era, and its reading; also plain Snapshots made in place.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "pickle_writer.hpp"
#include "trace/torch_snapshot.hpp"

namespace vramtrack::trace::test {

constexpr std::uint64_t kMiB = 1ULL << 20;

enum class Era { bare_list, v20, v21, v25, v212 };

inline Py frame(const std::string& name, const std::string& file, int line) {
  return py(Dict{{"name", py(name)}, {"filename", py(file)}, {"line", py(line)}});
}

/// One segment of 20 MiB: 8 MiB active (of which 100 bytes are rounding), 4 MiB pending, 8 MiB inactive; one alloc and
/// one free of 1 MiB in the trace, then the alloc of the active block. 2.12 adds labels, a host segment, its trace (a
/// list of entries, not of devices) and an unknown action.
inline Py sample(Era era) {
  const Py step = frame("step", "/home/me/train.py", 12);
  const Py run = frame("run", "/home/me/train.py", 40);
  const Py stack = py(List{step, run});
  const Py other = py(List{run, run});               // a function that calls itself: the same frame twice
  const std::uint64_t address = 0xffffff0000000000;  // above 2^63: nine bytes
  const auto block = [&](std::uint64_t at, std::uint64_t size, std::uint64_t requested, const char* state,
                         const Py& frames) {
    Dict out;
    if (era >= Era::v21) out.emplace_back("address", py(address + at));
    out.emplace_back("size", py(size));
    if (era >= Era::v21) out.emplace_back("requested_size", py(requested));
    out.emplace_back("state", py(state));
    if (era >= Era::v21)
      out.emplace_back("frames", frames);
    else
      out.emplace_back("history",
                       py(List{py(Dict{{"addr", py(address + at)}, {"real_size", py(requested)}, {"frames", frames}}),
                               py(Dict{{"addr", py(address + at)}, {"real_size", py(7)}, {"frames", other}})}));
    return py(out);
  };
  Dict segment{{"device", py(0)},
               {"address", py(address)},
               {"total_size", py(20 * kMiB)},
               {"allocated_size", py(8 * kMiB)},
               {"active_size", py(12 * kMiB)},
               {"stream", py(0)},
               {"segment_type", py("large")},
               {"segment_pool_id", pair(0, 3)},
               {"blocks", py(List{block(0, 8 * kMiB, 8 * kMiB - 100, "active_allocated", stack),
                                  block(8 * kMiB, 4 * kMiB, 4 * kMiB,
                                        era >= Era::v25 ? "active_pending_free" : "active_awaiting_free", other),
                                  block(12 * kMiB, 8 * kMiB, 5 * kMiB, "inactive", py(List{}))})}};
  if (era >= Era::v21) {
    segment.emplace_back("is_expandable", py(false));
    segment.emplace_back("frames", stack);
  }
  const Py segments = py(List{py(segment)});
  if (era == Era::bare_list) return segments;
  std::int64_t time_us = 1700000000000000;
  const auto event = [&](const char* action, std::uint64_t at, std::uint64_t size, const Py& frames) {
    Dict out{{"action", py(action)},
             {std::string(action) == "oom" ? "device_free" : "addr",
              py(std::string(action) == "oom" ? 5 * kMiB : address + at)},
             {"size", py(size)},
             {"stream", py(0)}};
    if (era >= Era::v21) out.emplace_back("time_us", py(time_us += 10));
    if (era >= Era::v25) out.emplace_back("compile_context", py("N/A"));
    if (era >= Era::v212) {
      const bool is_note = std::string(action) == "annotate";
      out.emplace_back("user_metadata", py(is_note ? "kept for later" : size == 8 * kMiB - 100 ? "step 7" : ""));
    }
    if (era >= Era::v212) out.emplace_back("pool_id", pair(0, 3));
    if (frames != nullptr) out.emplace_back("frames", frames);
    return py(out);
  };
  List events{event("alloc", 12 * kMiB, kMiB, stack), event("free_requested", 12 * kMiB, kMiB, nullptr),
              event("free_completed", 12 * kMiB, kMiB, nullptr), event("oom", 0, 99 * kMiB, other),
              event("alloc", 0, 8 * kMiB - 100, stack)};
  if (era >= Era::v212) {
    events.push_back(event("annotate", 0, 8 * kMiB - 100, nullptr));
    events.push_back(event("something_new", 0, 0, nullptr));
  }
  Dict root{{"segments", segments}, {"device_traces", py(List{py(events), py(List{})})}};
  if (era >= Era::v21)
    root.emplace_back("allocator_settings",
                      py(Dict{{"PYTORCH_CUDA_ALLOC_CONF", py("max_split_size_mb:64")},
                              {"max_split_size", py(-1)},
                              {"garbage_collection_threshold", py(0.5)},
                              {"expandable_segments", py(false)},
                              {"roundup_power2_divisions", py(Dict{{"1", py(0)}, {"2", py(0)}})}}));
  if (era >= Era::v25)
    root.emplace_back("external_annotations", py(List{py(Dict{{"name", py("Optimizer.step")},
                                                              {"stage", py("START")},
                                                              {"device", py(0)},
                                                              {"time_us", py(std::int64_t{1700000000000005})}})}));
  if (era >= Era::v212) {
    root.emplace_back(
        "host_segments",
        py(List{
            py(Dict{{"device", py(-1)}, {"address", py(4096)}, {"total_size", py(kMiB)}, {"blocks", py(List{})}})}));
    root.emplace_back("host_traces", py(List{event("alloc", 0, 512, stack), event("free_requested", 0, 512, nullptr)}));
    root.emplace_back("something_new", py(List{py(List{py(Dict{{"frames", py(List{py(3), py(None{})})}})}), py("x")}));
  }
  return py(root);
}

inline std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline Result<Snapshot> read(const std::string& pickle, Symbols& symbols, const ReadOptions& options = {}) {
  return read_torch_snapshot(bytes_of(pickle), "test.pickle", symbols, options);
}

inline StackId stack_of(Symbols& symbols, std::vector<Frame> frames) {
  std::vector<FrameId> ids;
  for (const Frame& f : frames) ids.push_back(symbols.intern(f));
  return symbols.intern(ids);
}
inline StackId line(Symbols& symbols, const std::string& file, std::uint32_t number) {
  return stack_of(symbols, {{symbols.intern("f"), symbols.intern(file), number}});
}

/// Adds a segment with the given blocks, one after another.
inline void add_segment(Snapshot& snapshot, std::uint64_t address, std::vector<Block> blocks, bool expandable = false) {
  Segment segment;
  segment.address = address;
  segment.is_expandable = expandable;
  segment.first_block = snapshot.blocks.size();
  segment.block_count = blocks.size();
  for (Block& block : blocks) {
    block.address = address + segment.size_bytes;
    segment.size_bytes += block.size_bytes;
    snapshot.blocks.push_back(block);
  }
  snapshot.segments.push_back(segment);
}

inline Block active(std::uint64_t bytes, StackId stack = kNoStack) {
  return {0, bytes, bytes, stack, BlockState::active};
}
inline Block pending(std::uint64_t bytes) {
  return {0, bytes, bytes, kNoStack, BlockState::pending_free};
}
inline Block inactive(std::uint64_t bytes) {
  return {0, bytes, 0, kNoStack, BlockState::inactive};
}

}  // namespace vramtrack::trace::test
