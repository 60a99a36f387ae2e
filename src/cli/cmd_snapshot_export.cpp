// snapshot flamegraph and export: the live bytes as a picture, the events for other tools.
#include "cli/cmd_snapshot.hpp"
#include "cli/side_by_side.hpp"
#include "trace/exports.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::cli {
namespace {

Result<trace::NamedProfile> choose(SnapshotWork& work, const trace::Snapshot& snapshot) {
  return trace::named_profile(snapshot, work.symbols, work.device(), work.options.at_peak);
}

int snapshot_flamegraph(SnapshotWork& work) {
  if (work.snapshots.size() > 2) return work.fail("a flame graph shows one snapshot, or two side by side");
  std::vector<std::string> pages;
  for (const trace::Snapshot& snapshot : work.snapshots) {
    const auto chosen = choose(work, snapshot);
    if (!chosen) return work.fail(chosen.error().message);
    auto page = trace::flamegraph_page(snapshot, *chosen, work.symbols);
    if (!page) return work.fail(page.error().message);
    pages.push_back(std::move(*page));
  }
  if (work.options.output.empty() && work.console.is_terminal())
    return work.fail("the flame graph is an HTML page: write it to a file with --output");
  return work.finish(pages.size() == 2 ? side_by_side(pages.front(), pages.back()) : pages.front(), kSnapshotDone);
}

int snapshot_export(SnapshotWork& work) {
  const std::string& format = work.options.format;
  if (format == "chrome" || format == "csv") {
    SnapshotOutput out(work.console, work.options.output);
    const trace::Sink sink = [&out](std::string_view text) { return out.write(text); };
    if (format == "chrome")
      trace::chrome_trace(work.snapshots.front(), work.symbols, work.device(), sink);
    else
      trace::events_csv(work.snapshots.front(), work.symbols, work.device(), sink);
    const Status closed = out.close();
    return closed ? kSnapshotDone : work.fail(closed.error().message);
  }
  const auto chosen = choose(work, work.snapshots.front());
  if (!chosen) return work.fail(chosen.error().message);
  if (format == "folded") return work.finish(trace::folded(chosen->profile, work.symbols), kSnapshotDone);
  if (format == "speedscope")
    return work.finish(trace::speedscope(chosen->profile, work.symbols, chosen->title), kSnapshotDone);
  if (work.options.output.empty() && work.console.is_terminal())
    return work.fail("the pprof format is binary: write it to a file with --output");
  const auto bytes = trace::pprof(chosen->profile, work.symbols);
  if (!bytes) return work.fail(bytes.error().message);
  return work.finish(*bytes, kSnapshotDone);
}

Runner declare_flamegraph(Arguments& arguments) {
  const auto options = std::make_shared<SnapshotOptions>();
  add_snapshot_files(arguments, *options);
  arguments.flag("--peak", "Draw the moment with the most live memory, not the end", options->at_peak);
  return snapshot_runner(options, {"flamegraph", snapshot_flamegraph, true});
}

Runner declare_export(Arguments& arguments) {
  const auto options = std::make_shared<SnapshotOptions>();
  add_snapshot_file(arguments, *options);
  add_export_format(arguments, options->format);
  arguments.flag("--peak", "With pprof, speedscope, folded: export the moment with the most live memory, not the end",
                 options->at_peak);
  return snapshot_runner(options, {"export", snapshot_export, true});
}

}  // namespace

const CommandInfo snapshot_flamegraph_verb{
    "flamegraph", "A flame graph of the live bytes, or two side by side, as one HTML file",
    "Examples:\n"
    "  vramtrack snapshot flamegraph --output live.html memory_snapshot.pickle\n"
    "  vramtrack snapshot flamegraph --peak --output peak.html memory_snapshot.pickle\n"
    "  vramtrack snapshot flamegraph --output both.html before.pickle after.pickle\n"
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
