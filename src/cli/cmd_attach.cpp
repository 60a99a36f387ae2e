// attach: runs PyTorch's own recorder for a while in a running program, and shows what grew.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "cli/cmd_snapshot.hpp"
#include "cli/commands.hpp"
#include "core/printable.hpp"
#include "host/interrupt.hpp"
#include "run/attach.hpp"

namespace vramtrack::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFailed = 2;
constexpr double kLongest_s = 3500;  ///< the program's own limit is an hour
/// If this process hangs, the program switches its recorder off this long after the planned end.
constexpr double kGrace_s = 60;
/// When snapshots are taken, as fractions of the duration. Before the first one, a step's buffers from before the
/// recording have time to be replaced; the second one distinguishes a warm-up from a leak.
constexpr double kMoments[] = {0.2, 0.6, 1.0};
constexpr std::size_t kKept = 10;

struct AttachOptions {
  std::uint32_t pid = 0;
  double duration_s = 30;
  std::string output;
  bool kept = false;
  bool injects = false;
};

/// "dir/name-2.pickle" for "dir/name.pickle".
std::string numbered(const std::string& path, std::size_t number) {
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t dot = path.rfind('.');
  const std::size_t at = dot == std::string::npos || dot <= name ? path.size() : dot;
  return fmt::format("{}-{}{}", path.substr(0, at), number, path.substr(at));
}

/// Returns false when interrupted, or when the program ends.
bool wait_until(const run::AttachTarget& target, Clock::time_point moment) {
  constexpr std::chrono::milliseconds kLook{200};
  while (Clock::now() < moment)
    if (target.has_ended() || !Interrupt::sleep_until(std::min(moment, Clock::now() + kLook))) return false;
  return true;
}

/// Returns the files that were written.
Result<std::vector<std::string>> record(const run::AttachTarget& target, run::AttachSession& session,
                                        const AttachOptions& options, Console& console) {
  const auto begun = session.ask(fmt::format("record {:.3f}", options.duration_s + kGrace_s));
  if (!begun) return fail(begun.error());
  if (!begun->empty())
    console.warn("the program already records its allocations; that recording is used and stays on afterwards");
  const auto start = Clock::now();
  const std::string base =
      options.output.empty() ? fmt::format("vramtrack-attach.{}.pickle", options.pid) : options.output;
  std::vector<std::string> files;
  bool goes_on = true;
  for (const double part : kMoments) {
    const auto after =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(part * options.duration_s));
    goes_on = goes_on && wait_until(target, start + after);
    if (target.has_ended()) return fail("the program has ended");
    const std::string file = numbered(base, files.size() + 1);
    if (const Status taken = session.snapshot(file); !taken) return fail(taken.error());
    files.push_back(file);
    if (!goes_on && files.size() > 1) break;
  }
  return files;
}

int attach(const AttachOptions& options, Console& console) {
  const auto failed = [&](const Error& error) {
    console.error(error.message);
    return kFailed;
  };
  const auto target = run::AttachTarget::open(options.pid);
  if (!target) return failed(target.error());
  auto session = run::AttachSession::open(*target, options.injects);
  if (!session) return failed(session.error());
  std::vector<std::string> files;
  std::vector<std::string> kept;
  const bool records = options.duration_s > 0;
  {
    run::AttachSession ends_here = std::move(*session);
    if (options.kept && records)
      if (const auto first = ends_here.kept(false); !first) return failed(first.error());
    if (records) {
      auto recorded = record(*target, ends_here, options, console);
      if (!recorded) return failed(recorded.error());
      files = std::move(*recorded);
    }
    if (options.kept) {
      auto lines = ends_here.kept(records);
      if (!lines) return failed(lines.error());
      kept = std::move(*lines);
    }
    if (const auto stopped = ends_here.ask("stop"); !stopped) return failed(stopped.error());
  }
  int status = kSnapshotDone;
  if (records) {
    const auto compared = std::make_shared<SnapshotOptions>();
    compared->files = files;
    status = leaks_runner(compared)(console);
    console.warn(fmt::format("the recorder is off again; the snapshots are {}", printable(joined(files))));
  }
  if (options.kept) {
    console.write(records ? "\nWhat keeps more tensors than at the beginning:\n" : "What keeps tensors:\n");
    if (kept.empty()) console.write("  nothing that Python can see keeps more\n");
    for (std::size_t i = 0; i < std::min(kept.size(), kKept); ++i) console.write("  " + kept[i] + '\n');
    if (kept.size() > kKept) console.write(fmt::format("  and {} more\n", kept.size() - kKept));
  }
  return status;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<AttachOptions>();
  arguments
      .operand("PID", "The process to record; it must run as your user",
               whole_number([into = options.get()](std::uint64_t pid) { into->pid = static_cast<std::uint32_t>(pid); },
                            1, INT32_MAX))
      .required();
  arguments.option("--duration", "TIME",
                   "How long to record (default 30s); 0 records nothing, for use with --kept alone",
                   [options](const std::string& word) -> Status {
                     double seconds = 0;
                     Status read = duration([&seconds](double each) { seconds = each; })(word);
                     if (!read && word != "0") return read;
                     if (seconds > kLongest_s) return fail("must be at most 58m");
                     options->duration_s = seconds;
                     return {};
                   });
  arguments
      .option("--output", "FILE",
              "Name of the snapshots, to which -1, -2 and -3 are added (default vramtrack-attach.PID.pickle)",
              file_to_write(options->output))
      .file();
  arguments.flag("--kept", "Also name the variables and containers that keep more and more tensors", options->kept);
  arguments.flag("--inject",
                 "Before Python 3.14: have gdb stop the program for a moment and call its Python (this carries a risk)",
                 options->injects);
  return until_interrupted([options](Console& console) { return attach(*options, console); });
}

}  // namespace

const CommandInfo attach_command{
    "attach", "Record a PyTorch program that is already running, and name the lines that grow",
    "Examples:\n"
    "  vramtrack attach 4242                              30 seconds; Ctrl-C ends it sooner\n"
    "  vramtrack attach 4242 --duration 5m --kept\n"
    "  vramtrack attach 4242 --inject                     Python 3.8 to 3.13 without vramtrack, through gdb\n"
    "The program must allow it with vramtrack.allow_attach(), run under 'vramtrack run', or run on Python 3.14 or "
    "newer;\n"
    "--inject does without (docs/attach.md).\n"
    "Exit: 0 nothing leaks, 1 a leak (or growth that may be one), 2 failed to attach or compare.",
    declare};

}  // namespace vramtrack::cli
