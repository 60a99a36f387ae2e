// trace flamegraph and export: live bytes, or growth between two moments, as a picture and for other tools.
#include <fmt/format.h>

#include "cli/cmd_snapshot.hpp"
#include "cli/cmd_trace.hpp"
#include "cli/side_by_side.hpp"
#include "core/printable.hpp"
#include "trace/event_stream.hpp"
#include "trace/exports.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::cli {
namespace {

/// Removes decreases, which a flame graph cannot show.
void keep_growth(trace::Profile& profile) {
  std::erase_if(profile, [](const trace::StackBytes& held) { return held.bytes <= 0; });
}

Result<std::string> flamegraph_of(const std::vector<std::string>& files, const TraceOptions& options,
                                  trace::NativeNames* native, Console& console) {
  trace::Symbols symbols;
  const auto run = open_run(console, files, options, symbols, native);
  if (!run) return fail(run.error());
  auto chosen = chosen_profile(**run, options);
  if (!chosen) return fail(chosen.error());
  keep_growth(chosen->profile);
  if (chosen->profile.empty() && !options.from.empty())
    return fail(fmt::format("{}: nothing to draw: there is no {}", files.front(), printable(chosen->title)));
  trace::Snapshot named;
  named.file = files.front();
  return trace::flamegraph_page(named, {chosen->profile, chosen->title, (*run)->names->line_of()}, symbols);
}

/// `beside`: another trace, with the same moments; empty: none.
int run_flamegraph(const TraceOptions& options, const std::string& beside, Console& console) {
  if (options.output.empty() && console.is_terminal())
    return trace_failed(console, {"the flame graph is an HTML page: write it to a file with --output"});
  const auto native = native_names();
  auto page = flamegraph_of(options.files, options, native.get(), console);
  if (!page) return trace_failed(console, page.error());
  if (!beside.empty()) {
    const auto other = flamegraph_of({beside}, options, native.get(), console);
    if (!other) return trace_failed(console, other.error());
    page = side_by_side(*page, *other);
  }
  return trace_written(console, options, *page, kTraceDone);
}

/// Writes the events in a snapshot's format, in file order; allocations in backing memory represent that memory.
int run_events(const TraceOptions& options, Console& console) {
  struct Event {
    std::uint32_t process, stack;
    trace::AllocEvent event;
    std::uint32_t device;
  };
  std::vector<Event> events;
  const trace::MemorySpace space = options.host ? trace::MemorySpace::host : trace::MemorySpace::device;
  trace::Symbols symbols;
  const auto native = native_names();
  const auto run = open_run(console, options.files, options, symbols, native.get(),
                            [&](std::uint32_t process, const trace::CallSite& site, std::uint64_t address,
                                std::uint64_t time_us, std::int64_t bytes) -> Status {
                              if (site.space != space) return {};
                              Event event{};
                              event.process = process;
                              event.stack = site.stack;
                              // One address per process, device and level.
                              event.device = static_cast<std::uint32_t>(std::max<int>(0, site.device));
                              event.event.address = address;
                              event.event.size_bytes = static_cast<std::uint64_t>(std::abs(bytes));
                              event.event.time_us = static_cast<std::int64_t>(time_us);
                              event.event.action = bytes >= 0 ? trace::Action::alloc : trace::Action::free_completed;
                              events.push_back(event);
                              return {};
                            });
  if (!run) return trace_failed(console, run.error());
  const auto& processes = (*run)->trace.processes();
  trace::StreamSnapshot stream(true);
  for (const Event& event : events) {
    trace::AllocEvent its = event.event;
    its.time_us += processes[event.process]->process().begin_realtime_us;
    its.stack = (*run)->names->stack(*processes[event.process], event.stack);
    // Each process has its own addresses, so its devices are shown as separate devices.
    if (Status taken =
            stream.take(event.device + event.process * static_cast<std::uint32_t>(probe::kMostDevices), 0, its);
        !taken)
      return trace_failed(console, taken.error());
  }
  const trace::Snapshot snapshot = stream.finish();
  SnapshotOutput out(console, options.output);
  const trace::Sink sink = [&out](std::string_view text) { return out.write(text); };
  if (options.format == "chrome")
    trace::chrome_trace(snapshot, symbols, {}, sink);
  else
    trace::events_csv(snapshot, symbols, {}, sink);
  const Status closed = out.close();
  return closed ? kTraceDone : trace_failed(console, closed.error());
}

int run_export(const TraceOptions& options, Console& console) {
  if (options.format == "chrome" || options.format == "csv") {
    if (!options.from.empty() || !options.to.empty())
      return trace_failed(
          console, {"--since and --until apply to pprof, speedscope and folded: chrome and csv contain all events"});
    return run_events(options, console);
  }
  if (options.format == "pprof" && options.output.empty() && console.is_terminal())
    return trace_failed(console, {"the pprof format is binary: write it to a file with --output"});
  trace::Symbols symbols;
  const auto native = native_names();
  const auto run = open_run(console, options.files, options, symbols, native.get());
  if (!run) return trace_failed(console, run.error());
  auto chosen = chosen_profile(**run, options);
  if (!chosen) return trace_failed(console, chosen.error());
  keep_growth(chosen->profile);
  if (options.format == "folded")
    return trace_written(console, options, trace::folded(chosen->profile, symbols), kTraceDone);
  if (options.format == "speedscope")
    return trace_written(console, options, trace::speedscope(chosen->profile, symbols, chosen->title), kTraceDone);
  const auto bytes = trace::pprof(chosen->profile, symbols);
  if (!bytes) return trace_failed(console, bytes.error());
  return trace_written(console, options, *bytes, kTraceDone);
}

std::shared_ptr<TraceOptions> declare_common(Arguments& arguments) {
  auto options = std::make_shared<TraceOptions>();
  add_trace_files(arguments, *options);
  arguments.flag("--host", "Pinned host memory instead of device memory", options->host);
  add_trace_moments(arguments, *options);
  return options;
}

Runner declare_flamegraph(Arguments& arguments) {
  const auto options = declare_common(arguments);
  const auto beside = std::make_shared<std::string>();
  arguments.option("--beside", "FILE", "Draw this trace, too, on the right", text(*beside)).file();
  return [options, beside](Console& console) { return run_flamegraph(*options, *beside, console); };
}

Runner declare_export(Arguments& arguments) {
  const auto options = declare_common(arguments);
  add_export_format(arguments, options->format);
  return [options](Console& console) { return run_export(*options, console); };
}

}  // namespace

const CommandInfo trace_flamegraph_verb{
    "flamegraph", "A flame graph of the live bytes, or of growth, as one HTML file",
    "Examples:\n"
    "  vramtrack trace flamegraph --output live.html trace.vramtrack\n"
    "  vramtrack trace flamegraph --since epoch#2 --until epoch#5 --output growth.html trace.vramtrack\n"
    "  vramtrack trace flamegraph --beside after.trace --output both.html before.trace\n"
    "Exit: 0 done, 2 could not read it.",
    declare_flamegraph};

const CommandInfo trace_export_verb{
    "export", "For other tools: pprof, speedscope, folded, chrome, csv",
    "Examples:\n"
    "  vramtrack trace export --format pprof --output live.pb.gz trace.vramtrack\n"
    "  vramtrack trace export --format chrome --output events.json trace.vramtrack   for ui.perfetto.dev\n"
    "Exit: 0 done, 2 could not read it.",
    declare_export};

}  // namespace vramtrack::cli
