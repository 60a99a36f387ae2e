// snapshot leaks: what grew from the first snapshot to the last, by stack.
#include <fmt/format.h>

#include "cli/cmd_snapshot.hpp"
#include "trace/compare.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::cli {
namespace {

int snapshot_leaks(SnapshotWork& work) {
  trace::GrowthOptions growth;
  growth.device = work.device();
  growth.device_used_bytes = work.options.used_bytes;
  if (!growth.device_used_bytes.empty() && growth.device_used_bytes.size() != work.snapshots.size())
    return work.fail(fmt::format("--used has {} sizes for {} snapshots: give one per snapshot, in the same order",
                                 growth.device_used_bytes.size(), work.snapshots.size()));
  const auto devices = trace::devices_of(work.snapshots);
  if (!growth.device && devices.size() > 1 && !growth.device_used_bytes.empty())
    return work.fail(
        fmt::format("--used applies to one device: choose it with --device ({})", fmt::join(devices, ", ")));
  const auto growths = trace::compare_devices(work.snapshots, growth);
  const std::size_t sites = work.options.top;
  const trace::Growth& worst = growths.front().growth;
  return work.finish(work.options.json ? trace::leaks_json(work.snapshots, work.symbols, growths, sites)
                                       : trace::leaks_text(work.snapshots, work.symbols, growths, sites),
                     !worst.is_comparable                        ? kSnapshotFailed
                     : worst.condition == trace::Condition::leak ? kSnapshotFound
                                                                 : kSnapshotDone);
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<SnapshotOptions>();
  add_snapshot_files(arguments, *options);
  add_snapshot_json(arguments, *options);
  add_snapshot_sites(arguments, *options);
  arguments
      .list("--used", "SIZES",
            "What nvidia-smi showed of the device at each snapshot, for growth outside the allocator: 10GiB,12GiB",
            size([into = options.get()](std::uint64_t bytes) { into->used_bytes.push_back(bytes); }))
      .in_manual("One size for each snapshot, in their order.");
  return snapshot_runner(options, {"leaks", snapshot_leaks, false, 2});
}

}  // namespace

const CommandInfo snapshot_leaks_verb{
    "leaks", "What grew from the first snapshot to the last, by stack",
    "Examples:\n"
    "  vramtrack snapshot leaks step100.pickle step200.pickle step300.pickle   three tell a leak from a warm-up\n"
    "  vramtrack snapshot leaks --used 10GiB,12GiB a.pickle b.pickle\n"
    "Exit: 0 nothing leaks, 1 a leak (or growth that may be one), 2 could not read or compare them.",
    declare};

}  // namespace vramtrack::cli
