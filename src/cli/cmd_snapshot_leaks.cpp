// snapshot leaks: growth from the first snapshot to the last, by stack.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/cmd_snapshot.hpp"
#include "trace/compare.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::cli {
namespace {

/// The things compared, each with its name, and the result.
struct Compared {
  std::vector<trace::Snapshot> moments;  ///< for a stream: only names
  std::vector<trace::DeviceGrowth> growths;
  std::optional<trace::SnapshotGrowth> host;  ///< for pinned host memory, if it was recorded
};

Result<Compared> compare_snapshots(SnapshotWork& work) {
  trace::GrowthOptions growth;
  growth.device = work.device();
  growth.device_used_bytes = work.options.used_bytes;
  if (!growth.device_used_bytes.empty() && growth.device_used_bytes.size() != work.snapshots.size())
    return fail(fmt::format("--used has {} sizes for {} snapshots: give one per snapshot, in the same order",
                            growth.device_used_bytes.size(), work.snapshots.size()));
  const auto devices = trace::devices_of(work.snapshots);
  if (!growth.device && devices.size() > 1 && !growth.device_used_bytes.empty())
    return fail(fmt::format("--used applies to one device: choose it with --device ({})", fmt::join(devices, ", ")));
  Compared out;
  out.growths = trace::compare_devices(work.snapshots, growth);
  if (!growth.device && !work.options.host &&
      std::all_of(work.snapshots.begin(), work.snapshots.end(),
                  [](const trace::Snapshot& snapshot) { return snapshot.has_host_memory(); })) {
    for (trace::Snapshot& snapshot : work.snapshots) snapshot.swap_host();
    out.host = trace::growth_of(work.snapshots);
    for (trace::Snapshot& snapshot : work.snapshots) snapshot.swap_host();
  }
  out.moments = std::move(work.snapshots);
  return out;
}

/// Compares the quiet moments of one stream.
Result<Compared> compare_moments(SnapshotWork& work) {
  const std::string& file = work.snapshots.front().file;
  if (!work.options.used_bytes.empty())
    return fail(fmt::format("--used is for snapshots; {} is a log of events", file));
  Compared out;
  out.growths = trace::compare_devices(work.streams);
  if (out.growths.empty()) return fail(file + " has too few events to detect growth");
  for (const trace::StreamReplay& stream : work.streams) {
    if (stream.device() != out.growths.front().device) continue;
    const std::int64_t first_us = stream.live().counts().first_time_us;
    for (const trace::Moment& moment : stream.quiet_moments()) {
      trace::Snapshot& named = out.moments.emplace_back();
      named.is_event_stream = true;
      named.file = fmt::format("{} at +{:.3f} s (event {})", file,
                               static_cast<double>(moment.time_us - first_us) * 1e-6, moment.event + 1);
    }
  }
  return out;
}

int snapshot_leaks(SnapshotWork& work) {
  const auto compared = work.streams.empty() ? compare_snapshots(work) : compare_moments(work);
  if (!compared) return work.fail(compared.error().message);
  const auto& [moments, growths, host_growth] = *compared;
  const trace::SnapshotGrowth* const host = host_growth ? &*host_growth : nullptr;
  const std::size_t sites = work.options.top;
  const trace::SnapshotGrowth& worst = growths.front().growth;
  return work.finish(work.options.json ? trace::leaks_json(moments, work.symbols, growths, host, sites)
                                       : trace::leaks_text(moments, work.symbols, growths, host, sites),
                     !worst.is_comparable                        ? kSnapshotFailed
                     : worst.condition == trace::Condition::leak ? kSnapshotFound
                                                                 : kSnapshotDone);
}

Runner declare(Arguments& arguments) {
  const auto options = snapshot_sites_options(arguments);
  arguments
      .list("--used", "SIZES",
            "Used memory of the device at each snapshot, from nvidia-smi, to find growth outside the allocator: "
            "10GiB,12GiB",
            device_memory([into = options.get()](std::uint64_t bytes) { into->used_bytes.push_back(bytes); }))
      .in_manual("One size for each snapshot, in the same order.");
  return leaks_runner(options);
}

}  // namespace

Runner leaks_runner(std::shared_ptr<const SnapshotOptions> options) {
  return snapshot_runner(std::move(options), {"leaks", snapshot_leaks, false, 2, true});
}

const CommandInfo snapshot_leaks_verb{
    "leaks", "What grew from the first snapshot to the last, by stack",
    "Examples:\n"
    "  vramtrack snapshot leaks step100.pickle step200.pickle step300.pickle   three tell a leak from a warm-up\n"
    "  vramtrack snapshot leaks --used 10GiB,12GiB a.pickle b.pickle\n"
    "Exit: 0 nothing leaks, 1 a leak (or growth that may be one), 2 could not read or compare them.",
    declare};

}  // namespace vramtrack::cli
