// oom show: what filled the memory when a traced program's allocation failed.
#include <fmt/format.h>

#include <filesystem>

#include "cli/cmd_trace.hpp"
#include "trace/run_oom.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNoneFailed = 1;

/// The newest trace in this folder with the default name of `vramtrack run`; empty if there is none.
std::string newest_trace() {
  namespace fs = std::filesystem;
  std::string newest;
  fs::file_time_type newest_time{};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(".", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("vramtrack.") || !name.ends_with(".trace")) continue;
    const fs::file_time_type time = entry.last_write_time(error);
    if (newest.empty() || time > newest_time) {
      newest = name;
      newest_time = time;
    }
  }
  return newest;
}

int show(TraceOptions options, Console& console) {
  if (options.files.empty()) {
    const std::string newest = newest_trace();
    if (newest.empty())
      return trace_failed(console, {"there is no vramtrack.*.trace in this folder; pass the trace file of a run"});
    options.files.push_back(newest);
  }
  trace::Symbols symbols;
  const auto native = native_names();
  const auto run = open_run(console, options.files, options, symbols, native.get());
  if (!run) return trace_failed(console, run.error());
  const trace::TraceReport report = trace::report_of((*run)->trace, *(*run)->names);
  const auto oom = trace::oom_of_run((*run)->trace, *(*run)->names, report);
  if (!oom) {
    console.error(fmt::format("{}: no allocation failed in this run", options.files.front()));
    return kNoneFailed;
  }
  return trace_written(console, options,
                       options.format == "json" ? trace::run_oom_json(*oom, *(*run)->names)
                                                : trace::run_oom_text(*oom, *(*run)->names, options.top),
                       kTraceDone);
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<TraceOptions>();
  options->top = 5;
  arguments
      .operands("FILE", "The trace of a run (default: the newest vramtrack.*.trace in this folder)",
                text(options->files))
      .file();
  arguments.option("--top", "N", "How many lines of code to show (default 5)",
                   whole_number([options](std::uint64_t n) { options->top = static_cast<std::uint32_t>(n); }, 1, 1000));
  arguments.format({"text", "json"}, "Write as: text (default), json", text(options->format));
  arguments.output(options->output);
  return [options](Console& console) { return show(*options, console); };
}

const CommandInfo oom_show_verb{"show", "Explain what filled the memory when an allocation failed",
                                "Examples:\n"
                                "  vramtrack oom show\n"
                                "  vramtrack oom show --format json job.trace\n"
                                "Exit: 0 shown, 1 no allocation failed, 2 the trace cannot be read. See docs/run.md.",
                                declare};
constexpr const CommandInfo* kVerbs[] = {&oom_show_verb};

}  // namespace

const CommandInfo oom_command{"oom", "Explain why a program under 'vramtrack run' ran out of memory",
                              "Examples:\n"
                              "  vramtrack oom show                    the newest trace in this folder\n"
                              "For a PyTorch snapshot, use 'vramtrack snapshot oom'.",
                              nullptr, kVerbs};

}  // namespace vramtrack::cli
