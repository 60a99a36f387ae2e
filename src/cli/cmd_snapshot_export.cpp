// snapshot flamegraph and export: the live bytes for looking at, the events for other tools.
#include "cli/cmd_snapshot.hpp"
#include "trace/exports.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::cli {
namespace {

Result<trace::NamedProfile> choose(SnapshotWork& work) {
  return trace::named_profile(work.snapshots.front(), work.symbols, work.device(), work.options.snapshot.at_peak);
}

}  // namespace

int snapshot_flamegraph(SnapshotWork& work) {
  const auto chosen = choose(work);
  if (!chosen) return work.fail(chosen.error().message);
  const auto page = trace::flamegraph_page(work.snapshots.front(), *chosen, work.symbols);
  if (!page) return work.fail(page.error().message);
  if (work.options.output.empty() && work.console.is_terminal())
    return work.fail("the flame graph is an HTML page: name its file with --output");
  return work.finish(*page, kSnapshotDone);
}

int snapshot_export(SnapshotWork& work) {
  const std::string& format = work.options.snapshot.format;
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
  const auto chosen = choose(work);
  if (!chosen) return work.fail(chosen.error().message);
  if (format == "folded") return work.finish(trace::folded(chosen->profile, work.symbols), kSnapshotDone);
  if (format == "speedscope")
    return work.finish(trace::speedscope(chosen->profile, work.symbols, chosen->title), kSnapshotDone);
  if (work.options.output.empty() && work.console.is_terminal())
    return work.fail("pprof's format is binary: name its file with --output");
  const auto bytes = trace::pprof(chosen->profile, work.symbols);
  if (!bytes) return work.fail(bytes.error().message);
  return work.finish(*bytes, kSnapshotDone);
}

}  // namespace vramtrack::cli
