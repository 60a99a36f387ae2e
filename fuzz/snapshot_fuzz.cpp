// A PyTorch snapshot from any bytes: the reader must answer with a snapshot or an error, and what it read must hold
// together and pass through every analysis.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "trace/diff.hpp"
#include "trace/exports.hpp"
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
  const Profile profile = live_profile(*snapshot);
  (void)folded(profile, symbols);
  (void)flamegraph_html(profile, symbols, "t", "s");
  if (!pprof(profile, symbols)) std::abort();
  for (const DeviceTrace& trace : snapshot->traces) {
    if (trace.events.empty()) continue;
    (void)timeline_of(*snapshot, trace.device, symbols);
    (void)oom_of(*snapshot, trace.device, symbols, 1ULL << 34);
  }
  events_csv(*snapshot, symbols, {}, [](std::string_view) { return true; });
  std::vector<Snapshot> both;
  both.push_back(*snapshot);
  both.push_back(std::move(*snapshot));
  if (!growth_of(both).sites.empty()) std::abort();
  return 0;
}
