// run: runs a program under the probe. Its GPU allocations are recorded with their stacks, and growth is reported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <memory>

#include "cli/cmd_trace.hpp"
#include "cli/commands.hpp"
#include "cli/late_libraries.hpp"
#include "cli/live_sites.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#include "report/status.hpp"
#include "run/session.hpp"

namespace vramtrack::cli {
namespace {

/// Not started; with --fail-on-leak, not recorded completely; or a requested limit was not in force everywhere.
constexpr int kNotStarted = 2;
constexpr int kLeaks = 1;
constexpr int kSuspected = 3;

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
        "process {} outlives the program and is no longer recorded; to record all of it, make the program wait for it",
        all);
  return fmt::format(
      "processes {} outlive the program and are no longer recorded; to record all of them, make the program wait for "
      "them",
      all);
}

/// What is known about an unexpected end; empty if the program exited by itself.
std::string killed_words(const ProgramEnd& end) {
  if (end.signal == 0) return {};
  const char* const known = ::sigdescr_np(end.signal);
  return fmt::format("the program was killed by signal {} ({})", end.signal, known == nullptr ? "unknown" : known);
}

std::string process_words(std::uint32_t pid, const std::string& command) {
  return command.empty() ? fmt::format("process {}", pid) : fmt::format("process {} ({})", pid, printable(command));
}

/// Where a requested limit was not in force, each with the reason; empty if it was in force everywhere.
std::vector<std::string> gaps_of_limit(const run::RunOutcome& outcome) {
  std::vector<std::string> gaps;
  if (outcome.limit_bytes == 0) return gaps;
  const std::string limit = format_bytes(static_cast<double>(outcome.limit_bytes));
  for (const run::EscapedProcess& each : outcome.escaped)
    gaps.push_back(
        fmt::format("the limit of {} was not enforced on {}: it uses {} without the probe, for example because its "
                    "environment was cleared (env -i, sudo)",
                    limit, process_words(each.pid, each.command), printable(each.library)));
  bool obeys = outcome.has_driver_calls;
  for (const run::UnrecordedProcess& each : outcome.unrecorded) obeys = obeys || each.limit_bytes > 0;
  if (gaps.empty() && !obeys)
    gaps.push_back(fmt::format(
        "the limit of {} was not enforced: no call to a GPU driver was seen. The program uses no GPU, or it opens the "
        "driver where the probe does not see it: docs/run.md describes what it sees",
        limit));
  return gaps;
}

/// The exit status if the program itself succeeded; 0: nothing is wrong.
int own_status(const RunOptions& options, const run::RunOutcome& outcome, const Result<SitesSoFar>& found) {
  if (!gaps_of_limit(outcome).empty()) return kNotStarted;
  if (!options.fails_on_leak) return 0;
  if (found && !found->leaks.empty()) return kLeaks;
  // A program that was not recorded, in whole or in part, is not known to be free of leaks.
  if (!found || outcome.trace.empty() || outcome.is_incomplete) return kNotStarted;
  return found->suspected.empty() ? 0 : kSuspected;
}

/// The likely reason for a missing trace, if nothing that was seen explains it.
std::string nothing_recorded_words(const ProgramEnd& end) {
  // A shell passes on the exit status of its last program.
  const int signal = end.exit_code.value_or(0) - 128;
  if (const char* const known = signal > 0 ? ::sigdescr_np(signal) : nullptr; known != nullptr)
    return fmt::format(
        "nothing was recorded; judging by its status of {}, the program, or one that it started, was killed by signal "
        "{} ({})",
        *end.exit_code, signal, known);
  return "nothing was recorded: the program called no GPU API that the probe sees (CUDA, HIP, OpenCL, Vulkan, Level "
         "Zero), or the probe could not be loaded into it (static and setuid programs)";
}

/// "train.py:57 train_step: 1.2 MiB/s, 21.0 MiB in 36 blocks for 18 s, with model.py:20 forward and 2 more lines; it
/// began 9 min after the start".
std::string late_rise_words(const run::LateRise& rise) {
  std::string with;
  if (!rise.others.empty()) with = ", with " + printable(rise.others.front());
  if (rise.others.size() > 1) with += fmt::format(" and {} more", format_count(rise.others.size() - 1, "line"));
  return fmt::format("{}: {}/s, {} in {} for {}{}; it began {} after the start", printable(rise.line),
                     format_size(static_cast<std::int64_t>(rise.bytes_per_s)), format_size(rise.bytes),
                     format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(0, rise.blocks)), "block"),
                     format_span(rise.lasts_s), with, format_span(rise.since_s));
}

int run_command_with(const RunOptions& options, const LayeredConfig& layers, Console& console) {
  LiveSites sites(sites_of_trace);
  run::RunListener listener;
  listener.warn = [&](const std::string& text) { console.warn(text); };
  bool is_asked = false;  // asked to stop; the user may ask again
  listener.report = [&] {
    is_asked = true;
    return sites.json();
  };
  listener.second = [&](const std::string& trace) {
    if (options.watches || is_asked) sites.look(trace);
    if (!options.watches) return;
    for (const std::string& leak : sites.new_leaks()) console.warn("LEAK at " + leak);
  };
  listener.native_names = native_names;
  listener.late_rise = [&](const run::LateRise& rise) {
    std::vector<std::string> lines = rise.others;
    lines.push_back(rise.line);
    if (!sites.take(lines)) console.warn("SUSPECTED leak at " + late_rise_words(rise));
  };
  if (options.watches) {
    load_late_libraries();
    listener.alert = [&](const AlertNotice& notice) {
      const LocalTimes local = console.local_times();
      if (notice.incident.news)
        console.warn(alert_lines(notice.view, notice.series, notice.alert, *notice.incident.news, {}));
    };
  }
  const auto outcome = run::run_program(options.settings, layers.config(), listener);
  if (!outcome) {
    console.error(outcome.error().message);
    return kNotStarted;
  }
  const std::string killed = killed_words(outcome->end);
  Result<SitesSoFar> found = SitesSoFar{};
  if (!outcome->trace.empty()) {
    found = sites_of_trace(outcome->trace);
    if (!found) console.error(found.error().message);
  }
  if (!options.is_quiet) {
    for (const run::UnrecordedProcess& each : outcome->unrecorded)
      console.warn(fmt::format("nothing was recorded of {}: {}{}", process_words(each.pid, each.command), each.why,
                               each.limit_bytes > 0 ? "; it obeyed the limit all the same" : ""));
    if (!outcome->trace.empty()) {
      if (!outcome->left_behind.empty()) console.warn(left_behind_words(outcome->left_behind));
      if (found) {
        for (const FoundLeak& leak : found->leaks) console.warn("LEAK at " + leak.words);
        for (const std::string& site : found->suspected) console.warn("SUSPECTED, began late: " + site);
        if (found->leaks.empty()) console.warn(found->verdict);
      }
      console.warn(
          fmt::format("recorded into {0}; 'vramtrack trace report {0}' shows all of it", printable(outcome->trace)));
    } else if (!outcome->is_incomplete && killed.empty()) {
      console.warn(nothing_recorded_words(outcome->end));
    }
    if (!killed.empty()) console.warn(killed + (outcome->trace.empty() ? "; nothing was recorded until then" : ""));
  }
  for (const std::string& gap : gaps_of_limit(*outcome)) console.error(gap);
  if (const int status = shell_status(outcome->end); status != 0) return status;
  if (options.fails_on_leak && outcome->trace.empty() && !outcome->is_incomplete)
    console.error("--fail-on-leak: nothing was recorded, so a leak cannot be ruled out");
  return own_status(options, *outcome, found);
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<RunOptions>();
  run::RunSettings& settings = options->settings;
  arguments.operands("PROGRAM", "The program and its arguments, after '--'", text(settings.program))
      .required()
      .program();
  arguments
      .option("--output", "FILE", "The trace file; %p is the process id (default vramtrack.PROGRAM.%p.trace)",
              file_to_write(settings.output))
      .file();
  arguments.flag("--watch", "Print alerts while the program runs, each with the lines that grow", options->watches);
  arguments.option("--limit", "SIZE", "Refuse allocations beyond this on each device, as if it were full",
                   device_memory([&settings](std::uint64_t bytes) { settings.limits.limit_bytes = bytes; }));
  arguments.option("--soft-limit", "SIZE", "Warn when a process holds more than this on a device, but refuse nothing",
                   device_memory([&settings](std::uint64_t bytes) { settings.limits.soft_limit_bytes = bytes; }));
  arguments.flag("--fail-on-leak",
                 "Return 1 when a line leaks, 3 when one is suspected, if the program itself succeeded",
                 options->fails_on_leak);
  arguments.flag("--exact",
                 "Make frameworks allocate each tensor from the driver: slow, but names the line of every tensor",
                 settings.exact);
  arguments.flag("--no-kept", "Do not search a Python program for the variables that keep memory",
                 [&settings] { settings.kept = false; });
  arguments.flag("--quiet", "Print only errors and alerts", options->is_quiet);
  arguments
      .option("--probe", "FOLDER", "Path of the probe's library (default: next to this program)",
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
    "Exit: the program's own status (128 + the signal that killed it), 1 with --fail-on-leak if a line leaks,\n"
    "2 the program did not start, a limit was not enforced in every process that uses a GPU, or, with --fail-on-leak,\n"
    "the recording is missing or incomplete, 3 with --fail-on-leak if a line is suspected (it began to grow late). See "
    "docs/run.md.",
    declare};

}  // namespace vramtrack::cli
