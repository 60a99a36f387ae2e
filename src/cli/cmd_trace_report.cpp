// trace report, top and diff: the sites as text and JSON.
#include <fmt/format.h>

#include <fstream>

#include "cli/cmd_trace.hpp"
#include "core/errno_words.hpp"
#include "core/read_all.hpp"
#include "trace/render/trace_render.hpp"

namespace vramtrack::cli {
namespace {

Result<trace::Suppressions> suppressions_of(const TraceOptions& options) {
  if (options.suppressions.empty()) return trace::Suppressions{};
  std::ifstream in(options.suppressions);
  const auto text = in ? read_all(in) : std::nullopt;
  if (!text) return fail(fmt::format("cannot read the suppressions {}: {}", options.suppressions, errno_words(errno)));
  return trace::Suppressions::parse(*text);
}

int run_report(const TraceOptions& options, Console& console, bool is_top) {
  const auto suppressions = suppressions_of(options);
  if (!suppressions) return trace_failed(console, suppressions.error());
  trace::Symbols symbols;
  const auto native = native_names();
  const auto run = open_run(console, options.files, options, symbols, native.get());
  if (!run) return trace_failed(console, run.error());
  trace::TraceReport report = trace::report_of((*run)->trace, *(*run)->names, *suppressions);
  if (native != nullptr)
    for (std::string& note : native->notes()) report.notes.push_back(std::move(note));
  if (is_top)
    return trace_written(console, options, trace::trace_top_text(report, *(*run)->names, options.top), kTraceDone);
  return trace_written(console, options,
                       options.format == "json" ? trace::trace_report_json(report, *(*run)->names)
                                                : trace::trace_report_text(report, *(*run)->names, options.top),
                       report.leak        ? kTraceLeak
                       : report.suspected ? kTraceSuspected
                                          : kTraceDone);
}

}  // namespace

int report_traces(const TraceOptions& options, Console& console) {
  return run_report(options, console, false);
}

namespace {

int run_diff(const TraceOptions& options, Console& console) {
  trace::Symbols symbols;
  const auto native = native_names();
  const bool is_of_two = options.from.empty() && options.to.empty();
  if (is_of_two != (options.files.size() == 2))
    return trace_failed(console, {"name two traces, or one trace and the moments to compare with --since and --until"});
  trace::Profile change;
  std::unique_ptr<OpenTrace> shown;
  std::string from = options.from, to = options.to.empty() ? "the end" : options.to;
  if (is_of_two) {
    const trace::MemorySpace space = options.host ? trace::MemorySpace::host : trace::MemorySpace::device;
    auto before = open_run(console, {options.files[0]}, options, symbols, native.get());
    if (!before) return trace_failed(console, before.error());
    auto after = open_run(console, {options.files[1]}, options, symbols, native.get());
    if (!after) return trace_failed(console, after.error());
    change = trace::difference(trace::profile_of((*before)->trace, *(*before)->names, space),
                               trace::profile_of((*after)->trace, *(*after)->names, space));
    from = options.files[0];
    to = options.files[1];
    (*after)->names->add_frames_of((*before)->names.get());
    shown = std::move(*after);
  } else {
    if (options.from.empty()) return trace_failed(console, {"--until needs --since: the moment to compare with"});
    auto run = open_run(console, options.files, options, symbols, native.get());
    if (!run) return trace_failed(console, run.error());
    auto chosen = chosen_profile(**run, options);
    if (!chosen) return trace_failed(console, chosen.error());
    change = std::move(chosen->profile);
    shown = std::move(*run);
  }
  return trace_written(console, options,
                       options.format == "json" ? trace::trace_diff_json(change, *shown->names, from, to)
                                                : trace::trace_diff_text(change, *shown->names, from, to, options.top),
                       kTraceDone);
}

void add_report_options(Arguments& arguments, TraceOptions& into, bool with_format) {
  add_trace_files(arguments, into);
  if (with_format) {
    arguments.format({"text", "json"}, "Write as: text (default), json", text(into.format));
  }
  constexpr std::uint64_t kMostSites = 100'000;
  arguments.option(
      "--top", "NUMBER", "How many sites to show (default 10)",
      whole_number([&into](std::uint64_t sites) { into.top = static_cast<std::uint32_t>(sites); }, 1, kMostSites));
}

Runner declare_report_or_top(Arguments& arguments, bool is_top) {
  const auto options = std::make_shared<TraceOptions>();
  add_report_options(arguments, *options, !is_top);
  arguments
      .option("--suppressions", "FILE", "Leave out the sites that this file's patterns match (docs/trace.md)",
              text(options->suppressions))
      .file();
  return [options, is_top](Console& console) { return run_report(*options, console, is_top); };
}

Runner declare_report(Arguments& arguments) {
  return declare_report_or_top(arguments, false);
}
Runner declare_top(Arguments& arguments) {
  return declare_report_or_top(arguments, true);
}

Runner declare_diff(Arguments& arguments) {
  const auto options = std::make_shared<TraceOptions>();
  add_report_options(arguments, *options, true);
  arguments.flag("--host", "Pinned host memory instead of device memory", options->host);
  add_trace_moments(arguments, *options);
  return [options](Console& console) { return run_diff(*options, console); };
}

}  // namespace

const CommandInfo trace_report_verb{"report", "Which lines leak, and what the memory is",
                                    "Examples:\n"
                                    "  vramtrack trace report trace.vramtrack\n"
                                    "  vramtrack trace report --format json trace.vramtrack\n"
                                    "Exit: 0 nothing leaks, or the trace is too short to tell; 1 a site leaks; 2 could "
                                    "not read it; 3 a site is suspected: it began to grow late.",
                                    declare_report};

const CommandInfo trace_top_verb{"top", "The lines that hold most, one line each",
                                 "Example:\n"
                                 "  vramtrack trace top --top 30 trace.vramtrack\n"
                                 "Exit: 0 done, 2 could not read it.",
                                 declare_top};

const CommandInfo trace_diff_verb{"diff", "What grew between two traces, or between two marks of one",
                                  "Examples:\n"
                                  "  vramtrack trace diff before.vramtrack after.vramtrack\n"
                                  "  vramtrack trace diff --since epoch#2 --until epoch#5 trace.vramtrack\n"
                                  "Exit: 0 done, 2 could not read them.",
                                  declare_diff};

}  // namespace vramtrack::cli
