// trace: which lines of the programs recorded by `vramtrack run` keep memory, and which of them leak.
#include "cli/cmd_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/cmd_snapshot.hpp"
#include "cli/progress.hpp"
#include "core/byte_input.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#ifdef VRAMTRACK_HAS_SYMBOLS
#include "symbolize/debug_names.hpp"
#endif

namespace vramtrack::cli {

int trace_failed(Console& console, const Error& error) {
  console.error(error.message);
  return kTraceFailed;
}

int trace_written(Console& console, const TraceOptions& options, std::string_view text, int exit_code) {
  SnapshotOutput out(console, options.output);
  out.write(text);
  const Status closed = out.close();
  return closed ? exit_code : trace_failed(console, closed.error());
}

std::unique_ptr<trace::NativeNames> native_names() {
#ifdef VRAMTRACK_HAS_SYMBOLS
  return std::make_unique<symbolize::DebugNames>();
#else
  return nullptr;  // this build has no libdw, so native frames are offsets in their modules
#endif
}

Result<std::unique_ptr<OpenTrace>> open_run(const std::vector<std::string>& files, const TraceOptions& options,
                                            trace::Symbols& symbols, trace::NativeNames* native,
                                            trace::ChangeVisit visit) {
  auto run = std::make_unique<OpenTrace>();
  std::vector<trace::MomentName> wanted;
  for (const auto& [option, text] : {std::pair("--since", &options.from), std::pair("--until", &options.to)}) {
    if (text->empty()) continue;
    auto moment = trace::parse_moment(*text);
    if (!moment) return fail(moment.error().during(option));
    wanted.push_back(std::move(*moment));
  }
  run->trace.wants(std::move(wanted));
  run->trace.sees_changes(std::move(visit));
  for (const std::string& file : files) {
    auto input = ByteInput::open(file, {.contents = "traces", .is_damage_an_error = false});
    if (!input) return fail(input.error().during("cannot read the trace"));
    if (Status done = run->trace.read(std::move(*input)); !done)
      return fail(done.error().during("cannot read the trace"));
  }
  run->trace.finish();
  if (run->trace.processes().empty())
    return fail(fmt::format("{}: no process of the program used a GPU API that the probe knows", files.front()));
  run->names =
      std::make_unique<trace::ProbeNames>(run->trace, symbols, native, trace::OwnCode(options.libraries, options.own));
  return run;
}

Result<std::unique_ptr<OpenTrace>> open_run(Console& console, const std::vector<std::string>& files,
                                            const TraceOptions& options, trace::Symbols& symbols,
                                            trace::NativeNames* native, trace::ChangeVisit visit) {
  const Progress progress(console, files);
  return open_run(files, options, symbols, native, std::move(visit));
}

void add_trace_files(Arguments& arguments, TraceOptions& into) {
  arguments
      .operands("FILE", "A trace of 'vramtrack run', and rings of the same run if it was killed; - is standard input",
                text(into.files))
      .required()
      .file();
  arguments.output(into.output);
  arguments.list("--library", "PREFIXES", "Paths with this prefix are libraries, not your own code",
                 text(into.libraries));
  arguments.list("--own", "PREFIXES", "Paths with this prefix are your own code, wherever they are", text(into.own));
}

void add_trace_moments(Arguments& arguments, TraceOptions& into) {
  arguments.option("--since", "MOMENT",
                   "Show growth since this mark (NAME or NAME#NUMBER) or time (12.5s), not live bytes",
                   text(into.from));
  arguments.option("--until", "MOMENT", "Look at this mark or time, not at the end", text(into.to));
}

namespace {

/// Whether it is --since or --until, and its position among the requested moments.
struct Asked {
  std::string_view option;
  const std::string& text;
  std::size_t moment;
};

Status has_moment(const trace::ProbeTrace& trace, const Asked& asked) {
  for (const auto& process : trace.processes())
    if (process->moments()[asked.moment]) return {};
  if (trace::parse_moment(asked.text)->time_us)
    return fail(fmt::format("{}: {} is after the end of the trace, which is {} long", asked.option, asked.text,
                            format_span(trace.duration_s())));
  std::string marks;
  std::size_t shown = 0;
  for (const auto& process : trace.processes())
    for (const trace::TraceMark& mark : process->marks())
      if (shown++ < 5)
        marks += fmt::format("{}{} at {:.3f}s", marks.empty() ? "" : ", ", mark.name,
                             static_cast<double>(mark.time_us) * 1e-6);
  return fail(fmt::format("{}: the trace has no mark {}: it has {}", asked.option, printable(asked.text),
                          marks.empty() ? "no marks" : marks + (shown > 5 ? " and others" : "")));
}

/// Whether a process has both moments, and the first is not before the second.
bool is_reversed(const trace::ProbeTrace& trace) {
  return std::any_of(trace.processes().begin(), trace.processes().end(), [](const auto& process) {
    const auto& moments = process->moments();
    return moments.size() == 2 && moments[0] && moments[1] && moments[0]->time_us > moments[1]->time_us;
  });
}

}  // namespace

Result<NamedChange> chosen_profile(OpenTrace& run, const TraceOptions& options) {
  const trace::MemorySpace space = options.host ? trace::MemorySpace::host : trace::MemorySpace::device;
  std::vector<Asked> asked;
  if (!options.from.empty()) asked.push_back({"--since", options.from, asked.size()});
  if (!options.to.empty()) asked.push_back({"--until", options.to, asked.size()});
  for (const Asked& each : asked)
    if (Status has = has_moment(run.trace, each); !has) return fail(has.error());
  if (is_reversed(run.trace))
    return fail(fmt::format("--since {0} is later than --until {1}: give the earlier moment as --since", options.from,
                            options.to));
  NamedChange out;
  std::optional<std::size_t> end;
  if (!options.to.empty()) end = asked.back().moment;
  out.profile = trace::profile_of(run.trace, *run.names, space, end);
  out.title = fmt::format("live bytes{}", options.to.empty() ? "" : " at " + options.to);
  if (!options.from.empty()) {
    out.profile = trace::difference(trace::profile_of(run.trace, *run.names, space, std::size_t{0}), out.profile);
    out.title = fmt::format("growth from {} to {}", options.from, options.to.empty() ? "the end" : options.to);
  }
  return out;
}

namespace {
constexpr const CommandInfo* kVerbs[] = {&trace_live_verb,  &trace_report_verb,     &trace_top_verb,
                                         &trace_diff_verb,  &trace_flamegraph_verb, &trace_page_verb,
                                         &trace_export_verb};
}  // namespace

const CommandInfo trace_command{"trace", "Read a trace of 'vramtrack run': which lines keep GPU memory, and which leak",
                                "Examples:\n"
                                "  vramtrack trace report trace.vramtrack\n"
                                "  vramtrack trace diff --since epoch#2 --until epoch#5 trace.vramtrack\n"
                                "See docs/trace.md.",
                                nullptr, kVerbs};

}  // namespace vramtrack::cli
