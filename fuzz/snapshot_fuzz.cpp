// A PyTorch snapshot from any bytes: the reader must answer with a snapshot or an error, and what it read must hold
// together and pass through every analysis.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "trace/category.hpp"
#include "trace/diff.hpp"
#include "trace/exports.hpp"
#include "trace/labels.hpp"
#include "trace/oom.hpp"
#include "trace/timeline.hpp"
#include "trace/torch_snapshot.hpp"
#include "trace/usage.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack::trace;
  Symbols symbols;
  auto snapshot = read_torch_snapshot(std::span(data, size), "fuzz", symbols);
  if (!snapshot) {
    if (snapshot.error().message.empty()) std::abort();
    return 0;
  }
  for (const Segment& segment : snapshot->segments)
    if (segment.first_block + segment.block_count > snapshot->blocks.size()) std::abort();
  const Usage usage = total_usage(*snapshot);
  if (usage.releasable_bytes + usage.pinned_bytes != usage.inactive_bytes) std::abort();
  (void)usage_of(*snapshot);
  StackCategories stacks(symbols);
  if (categories_of(*snapshot, stacks).bytes() != static_cast<std::int64_t>(usage.requested_bytes)) std::abort();
  const Profile profile = live_profile(*snapshot);
  (void)folded(profile, symbols);
  (void)flamegraph_html(profile, symbols, "t", "s");
  if (!pprof(profile, symbols)) std::abort();
  for (const Block& block : snapshot->blocks)
    if (block.origin >= snapshot->origins.size()) std::abort();
  (void)labels_of(*snapshot);
  // The devices' memory, then the pinned host memory.
  for (int memory = 0; memory < 2; ++memory) {
    for (const DeviceTrace& trace : snapshot->traces) {
      if (trace.events.empty()) continue;
      (void)timeline_of(*snapshot, trace.device, symbols);
      (void)oom_of(*snapshot, trace.device, symbols, 1ULL << 34);
      (void)labels_at(*snapshot, trace.device, trace.events.size());
    }
    for (const std::uint32_t device : oom_devices(*snapshot)) (void)oom_of(*snapshot, device, symbols);
    snapshot->swap_host();
  }
  events_csv(*snapshot, symbols, {}, [](std::string_view) { return true; });
  std::vector<Snapshot> both;
  both.push_back(*snapshot);
  both.push_back(std::move(*snapshot));
  if (!growth_of(both).sites.empty()) std::abort();
  return 0;
}
