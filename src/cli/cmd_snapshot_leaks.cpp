// snapshot leaks: what grew from the first snapshot to the last, by stack.
#include <fmt/format.h>

#include "cli/cmd_snapshot.hpp"
#include "trace/compare.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::cli {

int snapshot_leaks(SnapshotWork& work) {
  trace::GrowthOptions growth;
  growth.device = work.device();
  growth.device_used_bytes = work.options.snapshot.used_bytes;
  if (!growth.device_used_bytes.empty() && growth.device_used_bytes.size() != work.snapshots.size())
    return work.fail(fmt::format("--used has {} sizes for {} snapshots: name one for each, in their order",
                                 growth.device_used_bytes.size(), work.snapshots.size()));
  const auto devices = trace::devices_of(work.snapshots);
  if (!growth.device && devices.size() > 1 && !growth.device_used_bytes.empty())
    return work.fail(fmt::format("--used is of one device: name it with --device ({})", fmt::join(devices, ", ")));
  const auto growths = trace::compare_devices(work.snapshots, growth);
  const std::size_t sites = work.options.snapshot.top;
  const trace::Growth& worst = growths.front().growth;
  return work.finish(work.options.json ? trace::leaks_json(work.snapshots, work.symbols, growths, sites)
                                       : trace::leaks_text(work.snapshots, work.symbols, growths, sites),
                     !worst.is_comparable                        ? kSnapshotFailed
                     : worst.condition == trace::Condition::leak ? kSnapshotFound
                                                                 : kSnapshotDone);
}

}  // namespace vramtrack::cli
