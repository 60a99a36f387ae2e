// snapshot flamegraph and export: the live bytes for looking at, the events for other tools.
#include <fmt/format.h>

#include <algorithm>

#include "cli/cmd_snapshot.hpp"
#include "core/format.hpp"
#include "trace/exports.hpp"
#include "trace/live_set.hpp"
#include "trace/timeline.hpp"
#include "trace/words.hpp"

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
  if (!work.options.at_peak)
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
                                            number_words(highest->at.event + 1))};
}

std::int64_t total_of(const Profile& profile) {
  std::int64_t total = 0;
  for (const StackBytes& held : profile) total += std::max<std::int64_t>(held.bytes, 0);
  return total;
}

int snapshot_flamegraph(SnapshotWork& work) {
  const auto chosen = choose(work);
  if (!chosen) return work.fail(chosen.error().message);
  if (total_of(chosen->profile) == 0)
    return work.fail(fmt::format("{} has no live block: there is nothing to draw", work.snapshots.front().file));
  if (work.options.output.empty() && work.console.is_terminal())
    return work.fail("the flame graph is an HTML page: name its file with --output");
  const std::string subtitle = fmt::format(
      "{}: {} requested and held, {} stacks; the width of a frame is its bytes", printable(work.snapshots.front().file),
      bytes_words(total_of(chosen->profile)), number_words(chosen->profile.size()));
  return work.finish(flamegraph_html(chosen->profile, work.symbols, chosen->title, subtitle), kSnapshotDone);
}

int snapshot_export(SnapshotWork& work) {
  const std::string& format = work.options.format;
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

Runner declare_flamegraph(Arguments& arguments) {
  const auto options = std::make_shared<SnapshotOptions>();
  add_snapshot_file(arguments, *options);
  arguments.flag("--peak", "Draw the moment when most was live, not the end", options->at_peak);
  return snapshot_runner(options, {"flamegraph", snapshot_flamegraph, true});
}

Runner declare_export(Arguments& arguments) {
  const auto options = std::make_shared<SnapshotOptions>();
  add_snapshot_file(arguments, *options);
  const std::vector<std::string> formats = {"pprof", "speedscope", "folded", "chrome", "csv"};
  arguments
      .option("--format", "NAME", "Write as: pprof, speedscope, folded (live bytes by stack), chrome, csv (events)",
              one_of(formats, options->format))
      .required()
      .completes(formats);
  arguments.flag("--peak", "With pprof, speedscope, folded: export the moment when most was live, not the end",
                 options->at_peak);
  return snapshot_runner(options, {"export", snapshot_export, true});
}

}  // namespace

const CommandInfo snapshot_flamegraph_verb{
    "flamegraph", "A flame graph of the live bytes, as one HTML file",
    "Examples:\n"
    "  vramtrack snapshot flamegraph --output live.html memory_snapshot.pickle\n"
    "  vramtrack snapshot flamegraph --peak --output peak.html memory_snapshot.pickle\n"
    "Exit: 0 done, 2 could not read it.",
    declare_flamegraph};

const CommandInfo snapshot_export_verb{
    "export", "For other tools: pprof, speedscope, folded, chrome, csv",
    "Examples:\n"
    "  vramtrack snapshot export --format pprof --output live.pb.gz memory_snapshot.pickle && go tool pprof -http : "
    "live.pb.gz\n"
    "  vramtrack snapshot export --format speedscope --output live.speedscope.json memory_snapshot.pickle\n"
    "  vramtrack snapshot export --format chrome --output trace.json memory_snapshot.pickle   for ui.perfetto.dev\n"
    "Exit: 0 done, 2 could not read it.",
    declare_export};

}  // namespace vramtrack::cli
