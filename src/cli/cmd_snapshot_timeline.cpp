// snapshot timeline and oom: live memory over the trace, and what filled the device.
#include <fmt/format.h>

#include "cli/cmd_snapshot.hpp"
#include "core/format.hpp"
#include "trace/oom.hpp"
#include "trace/render/render.hpp"
#include "trace/timeline.hpp"
#include "trace/usage.hpp"

namespace vramtrack::cli {
namespace {

constexpr std::size_t kTextPoints = 30;
constexpr std::size_t kJsonPoints = 500;

std::string no_trace(const SnapshotWork& work) {
  if (work.snapshots.front().is_heap_profile)
    return fmt::format(
        "{} is a heap profile, which shows one moment: 'vramtrack snapshot summary' shows what is live then, and "
        "'vramtrack snapshot leaks' what grew between two",
        work.snapshots.front().file);
  return fmt::format(
      "{} has no trace{}: it was recorded without history. Call torch.cuda.memory._record_memory_history() before the "
      "steps; 'vramtrack snapshot summary' needs no trace",
      work.snapshots.front().file, work.device() ? fmt::format(" of device {}", *work.device()) : "");
}

int snapshot_timeline(SnapshotWork& work) {
  const trace::Snapshot& snapshot = work.snapshots.front();
  std::vector<trace::Timeline> timelines;
  for (const trace::StreamReplay& stream : work.streams) timelines.push_back(stream.timeline(work.symbols));
  for (const std::uint32_t device : trace::traced_devices(snapshot, work.device()))
    timelines.push_back(trace::timeline_of(snapshot, device, work.symbols, timeline_options(work.options)));
  if (timelines.empty())
    timelines = trace::timelines_of_samples(snapshot, work.device(), timeline_options(work.options));
  if (timelines.empty()) return work.fail(no_trace(work));
  return work.finish(work.options.json ? trace::timeline_json(snapshot, timelines, work.symbols, work.options.top)
                                       : trace::timeline_text(snapshot, timelines, work.symbols, work.options.top),
                     kSnapshotDone);
}

/// One report per device of a snapshot. Errors: no device is known, or the capacity is impossible.
Result<std::vector<trace::OomReport>> oom_reports(SnapshotWork& work, const trace::Snapshot& snapshot) {
  const auto devices = trace::oom_devices(snapshot, work.device());
  if (devices.empty())
    return fail(
        fmt::format("{} has neither a trace nor any memory of a device: call "
                    "torch.cuda.memory._record_memory_history() before the steps",
                    snapshot.file));
  const std::optional<std::uint64_t> capacity_bytes = work.options.capacity_bytes;
  std::vector<trace::OomReport> reports;
  for (const std::uint32_t device : devices) {
    const std::uint64_t reserved = trace::total_usage(snapshot, device).reserved_bytes;
    if (capacity_bytes && *capacity_bytes < reserved)
      return fail(fmt::format("--capacity: device {} had {} reserved, more than {}; give the capacity of that device",
                              device, format_size(reserved), format_size(*capacity_bytes)));
    reports.push_back(trace::oom_of(snapshot, device, work.symbols, capacity_bytes));
  }
  return reports;
}

int snapshot_oom(SnapshotWork& work) {
  std::vector<std::vector<trace::OomReport>> reports;
  for (const trace::Snapshot& snapshot : work.snapshots) {
    auto its = oom_reports(work, snapshot);
    if (!its) return work.fail(its.error().message);
    reports.push_back(std::move(*its));
  }
  return work.finish(work.options.json ? trace::oom_json(work.snapshots, reports, work.symbols, work.options.top)
                                       : trace::oom_text(work.snapshots, reports, work.symbols, work.options.top),
                     kSnapshotDone);
}

std::shared_ptr<SnapshotOptions> declare_common(Arguments& arguments, bool takes_many) {
  auto options = std::make_shared<SnapshotOptions>();
  if (takes_many)
    add_snapshot_files(arguments, *options);
  else
    add_snapshot_file(arguments, *options);
  add_snapshot_json(arguments, *options);
  add_snapshot_sites(arguments, *options);
  return options;
}

Runner declare_timeline(Arguments& arguments) {
  return snapshot_runner(declare_common(arguments, false), {"timeline", snapshot_timeline, true, 1, true});
}

Runner declare_oom(Arguments& arguments) {
  const auto options = declare_common(arguments, true);
  arguments.option("--capacity", "SIZE",
                   "Capacity of the device, to show memory outside the allocator, for example 80GiB",
                   capacity(options->capacity_bytes));
  return snapshot_runner(options, {"oom", snapshot_oom, true});
}

}  // namespace

trace::TimelineOptions timeline_options(const SnapshotOptions& options) {
  trace::TimelineOptions out;
  out.points = options.json ? kJsonPoints : kTextPoints;
  out.sites = options.top;
  return out;
}

const CommandInfo snapshot_timeline_verb{"timeline", "Live bytes by site over the trace, and what made up its peaks",
                                         "Example:\n"
                                         "  vramtrack snapshot timeline --top 5 memory_snapshot.pickle\n"
                                         "Exit: 0 done, 2 could not read it, or it has no trace.",
                                         declare_timeline};

const CommandInfo snapshot_oom_verb{
    "oom",
    "What filled the memory: a leak, a limit, fragmentation, pending frees, others, or a program that is too big",
    "Examples:\n"
    "  vramtrack snapshot oom --capacity 80GiB oom_snapshot.pickle\n"
    "  vramtrack snapshot oom oom-evidence/*.pickle\n"
    "Exit: 0 done, 2 could not read it.",
    declare_oom};

}  // namespace vramtrack::cli
