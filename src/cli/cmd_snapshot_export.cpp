// snapshot flamegraph and export: the live bytes for looking at, the events for other tools.
#include <fmt/format.h>

#include <algorithm>

#include "cli/cmd_snapshot.hpp"
#include "core/format.hpp"
#include "trace/exports.hpp"
#include "trace/live_set.hpp"
#include "trace/timeline.hpp"

namespace vramtrack::cli {
namespace {

using namespace trace;

/// The profile that --peak and --device ask for, and what it is called.
struct Chosen {
  Profile profile;
  std::string title;
};

Result<Chosen> choose(SnapshotWork& work) {
  const Snapshot& snapshot = work.snapshots.front();
  const std::string of = work.device() ? fmt::format("device {}", *work.device()) : "all devices";
  if (!work.options.snapshot.at_peak)
    return Chosen{live_profile(snapshot, work.device()), fmt::format("live GPU memory by stack, {}", of)};
  std::optional<Peak> highest;
  std::uint32_t device = 0;
  for (const DeviceTrace& trace : snapshot.traces) {
    if (trace.events.empty() || (work.device() && trace.device != *work.device())) continue;
    TimelineOptions options;
    options.points = 1;
    options.peaks = 1;
    const Timeline timeline = timeline_of(snapshot, trace.device, work.symbols, options);
    if (timeline.peaks.empty() || (highest && highest->at.live_bytes >= timeline.peaks.front().at.live_bytes)) continue;
    highest = timeline.peaks.front();
    device = trace.device;
  }
  if (!highest)
    return vramtrack::fail(fmt::format("--peak: {} has no trace to find one in; leave --peak away", snapshot.file));
  return Chosen{highest->sites, fmt::format("GPU memory by stack at the peak of device {} (trace entry {})", device,
                                            format_number(highest->at.event + 1))};
}

std::int64_t total_of(const Profile& profile) {
  std::int64_t total = 0;
  for (const StackBytes& held : profile) total += std::max<std::int64_t>(held.bytes, 0);
  return total;
}

}  // namespace

int snapshot_flamegraph(SnapshotWork& work) {
  const auto chosen = choose(work);
  if (!chosen) return work.fail(chosen.error().message);
  if (total_of(chosen->profile) == 0)
    return work.fail(fmt::format("{} has no live block: there is nothing to draw", work.snapshots.front().file));
  if (work.options.output.empty() && work.console.is_terminal())
    return work.fail("the flame graph is an HTML page: name its file with --output");
  const std::string subtitle = fmt::format(
      "{}: {} requested and held, {} stacks; the width of a frame is its bytes", printable(work.snapshots.front().file),
      format_size(total_of(chosen->profile)), format_number(chosen->profile.size()));
  return work.finish(flamegraph_html(chosen->profile, work.symbols, chosen->title, subtitle), kSnapshotDone);
}

int snapshot_export(SnapshotWork& work) {
  const std::string& format = work.options.snapshot.format;
  if (format == "chrome" || format == "csv") {
    SnapshotOutput out(work.console, work.options.output);
    const Sink sink = [&out](std::string_view text) { return out.write(text); };
    if (format == "chrome")
      chrome_trace(work.snapshots.front(), work.symbols, work.device(), sink);
    else
      events_csv(work.snapshots.front(), work.symbols, work.device(), sink);
    const Status closed = out.close();
    return closed ? kSnapshotDone : work.fail(closed.error().message);
  }
  const auto chosen = choose(work);
  if (!chosen) return work.fail(chosen.error().message);
  if (format == "folded") return work.finish(folded(chosen->profile, work.symbols), kSnapshotDone);
  if (format == "speedscope")
    return work.finish(speedscope(chosen->profile, work.symbols, chosen->title), kSnapshotDone);
  if (work.options.output.empty() && work.console.is_terminal())
    return work.fail("pprof's format is binary: name its file with --output");
  const auto bytes = pprof(chosen->profile, work.symbols);
  if (!bytes) return work.fail(bytes.error().message);
  return work.finish(*bytes, kSnapshotDone);
}

}  // namespace vramtrack::cli
