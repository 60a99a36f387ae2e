// run: runs a program under the probe. Its GPU allocations are recorded with their stacks, and growth is reported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "cli/commands.hpp"
#include "cli/live_sites.hpp"
#include "cli/shared_arguments.hpp"
#include "core/printable.hpp"
#include "report/status.hpp"
#include "run/session.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNotStarted = 2;  ///< or, with --fail-on-leak, not recorded completely
constexpr int kLeaks = 1;

struct RunOptions {
  ConfigRequest config;
  run::RunSettings settings;
  bool watches = false;
  bool fails_on_leak = false;
  bool is_quiet = false;
};

std::string left_behind_words(const std::vector<std::uint32_t>& pids) {
  const std::string all = fmt::format("{}", fmt::join(pids, ", "));
  if (pids.size() == 1)
    return fmt::format(
        "process {} outlives the program and is no longer recorded; to record all of it, let the program wait for it",
        all);
  return fmt::format(
      "processes {} outlive the program and are no longer recorded; to record all of them, let the program wait for "
      "them",
      all);
}

int run_command_with(const RunOptions& options, const LayeredConfig& layers, Console& console) {
  LiveSites sites(sites_of_trace);
  run::RunListener listener;
  listener.warn = [&](const std::string& text) { console.warn(text); };
  bool is_asked = false;  // to stop, by somebody who may ask again
  listener.report = [&] {
    is_asked = true;
    return sites.json();
  };
  listener.second = [&](const std::string& trace) {
    if (options.watches || is_asked) sites.look(trace);
    if (!options.watches) return;
    for (const std::string& leak : sites.new_leaks()) console.warn("LEAK at " + leak);
  };
  if (options.watches)
    listener.alert = [&](const AlertTold& told) {
      if (told.story) console.warn(alert_lines(told.view, told.series, told.alert, *told.story, {}));
    };
  const auto outcome = run::run_program(options.settings, layers.config(), listener);
  if (!outcome) {
    console.error(outcome.error().message);
    return kNotStarted;
  }
  const int status = shell_status(outcome->end);
  const auto own_or = [status](int ours) { return status == 0 ? ours : status; };
  if (outcome->trace.empty()) {
    if (!options.is_quiet && !outcome->is_incomplete)
      console.warn(
          "nothing was recorded: the program called no GPU API that the probe sees (CUDA, HIP, OpenCL, Vulkan, Level "
          "Zero), or the "
          "probe could not be loaded into it (static and setuid programs)");
    return outcome->is_incomplete && options.fails_on_leak ? own_or(kNotStarted) : status;
  }
  if (!options.is_quiet && !outcome->left_behind.empty()) console.warn(left_behind_words(outcome->left_behind));
  const auto found = sites_of_trace(outcome->trace);
  if (!found) console.error(found.error().message);
  const bool leaks = found && !found->leaks.empty();
  if (!options.is_quiet) {
    if (leaks)
      for (const std::string& leak : found->leaks) console.warn("LEAK at " + leak);
    else if (found)
      console.warn(found->verdict);
    console.warn(
        fmt::format("recorded into {0}; 'vramtrack trace report {0}' shows all of it", printable(outcome->trace)));
  }
  if (!options.fails_on_leak) return status;
  // A run that was recorded only in part is not known to be free of leaks.
  return leaks ? own_or(kLeaks) : !found || outcome->is_incomplete ? own_or(kNotStarted) : status;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<RunOptions>();
  run::RunSettings& settings = options->settings;
  arguments.operands("PROGRAM", "The program and its arguments, after '--'", text(settings.program))
      .required()
      .program();
  arguments
      .option("--output", "FILE", "The trace file; %p is a process id (default vramtrack.PROGRAM.%p.trace)",
              text(settings.output))
      .file();
  arguments.flag("--watch", "Print alerts while the program runs, each with the lines that grow", options->watches);
  arguments.option("--limit", "SIZE", "Refuse allocations beyond this on each device, as if it were full",
                   memory_limit([&settings](std::uint64_t bytes) { settings.limits.limit_bytes = bytes; }));
  arguments.option("--soft-limit", "SIZE", "Warn when a process holds more than this on a device, but refuse nothing",
                   memory_limit([&settings](std::uint64_t bytes) { settings.limits.soft_limit_bytes = bytes; }));
  arguments.flag("--fail-on-leak", "Return 1 when a line leaks and the program itself succeeded",
                 options->fails_on_leak);
  arguments.flag("--exact",
                 "Make frameworks allocate each tensor from the driver: slow, but names the line of every tensor",
                 settings.exact);
  arguments.flag("--quiet", "Print only errors and alerts", options->is_quiet);
  arguments
      .option("--probe", "FOLDER", "Path of the probe's library (default: beside this program)",
              text(settings.probe_folder))
      .file();
  add_sources(arguments, options->config);
  add_config(arguments, options->config);
  return configured<RunOptions>(options, run_command_with);
}

}  // namespace

const CommandInfo run_command{
    "run", "Run a program and name the lines that keep GPU memory",
    "Examples:\n"
    "  vramtrack run -- python train.py\n"
    "  vramtrack run --watch --output job.trace -- python train.py\n"
    "  vramtrack run --limit 20GiB -- ./server\n"
    "  vramtrack run --fail-on-leak -- python -m pytest tests/gpu\n"
    "Exit: the program's own status (128 + the signal that killed it), 1 with --fail-on-leak where a line leaks,\n"
    "2 the program was not started, or with --fail-on-leak not completely recorded. See docs/run.md.",
    declare};

}  // namespace vramtrack::cli
