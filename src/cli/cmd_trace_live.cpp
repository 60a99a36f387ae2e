// trace live: shows which lines of running programs keep GPU memory, without a restart.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "cli/cmd_trace.hpp"
#include "cli/telemetry_source.hpp"
#include "core/format.hpp"
#include "core/number_text.hpp"
#include "core/printable.hpp"
#include "host/interrupt.hpp"
#include "host/process.hpp"
#include "host/user.hpp"
#include "trace/profile.hpp"
#ifdef VRAMTRACK_HAS_TELEMETRY
#include "telemetry/kernel_memory.hpp"
#include "telemetry/recording.hpp"
#endif

namespace vramtrack::cli {
namespace {

struct LiveOptions {
  std::vector<std::string> pids;
  std::string container, job, user;
  bool all = false, nvidia_ioctls = false;
  std::optional<double> seconds;
  TraceOptions trace;
};

#ifdef VRAMTRACK_HAS_TELEMETRY

constexpr std::chrono::seconds kLookEvery{1};
constexpr std::chrono::seconds kShowEvery{2};

Result<std::vector<std::uint32_t>> pids_of(const LiveOptions& options) {
  std::vector<std::uint32_t> pids;
  for (const std::string& word : options.pids) {
    const std::uint32_t pid = parse_number<std::uint32_t>(word).value_or(0);
    if (pid == 0) return fail(fmt::format("--pid: expected the number of a process, not '{}'", printable(word)));
    if (!read_process("/proc", pid))
      return fail(fmt::format(
          "--pid {}: there is no such process here; 'vramtrack holders' lists those that hold GPU memory", pid));
    pids.push_back(pid);
  }
  return pids;
}

bool lives(const trace::ProbeProcess& process) {
  std::string scratch;
  const auto now = process_alive("/proc", process.pid, scratch);
  return now && now->start_ticks == process.start_ticks;
}

/// Whether the process is one of these or their descendants; nullopt: it has ended.
std::optional<bool> is_of(std::uint32_t pid, const std::vector<std::uint32_t>& pids) {
  constexpr int kDeepest = 32;
  for (int depth = 0; pid > 1 && depth < kDeepest; ++depth) {
    if (std::find(pids.begin(), pids.end(), pid) != pids.end()) return true;
    std::ifstream in(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(in, text, '\0');  // the process may end meanwhile; reading its file then fails
    const auto stat = parse_stat(text);
    if (!stat) return std::nullopt;
    pid = stat->parent_pid;
  }
  return false;
}

/// Whether the options select the process: "4f2a9c" is the container with an id that begins so; a Slurm job is "1234"
/// for all its steps, or "1234.0". nullopt: the process has ended.
std::optional<bool> is_selected(const LiveOptions& options, const std::vector<std::uint32_t>& pids, std::uint32_t pid) {
  if (options.all) return true;
  const std::optional<bool> is_child = pids.empty() ? false : is_of(pid, pids);
  if (is_child.value_or(true) || (options.container.empty() && options.job.empty() && options.user.empty()))
    return is_child;
  const auto info = read_process("/proc", pid);
  if (!info) return std::nullopt;
  if (!options.container.empty() &&
      (info->container == options.container || info->container.starts_with(options.container)))
    return true;
  if (!options.job.empty() && (info->slurm_job == options.job || info->slurm_job.starts_with(options.job + ".")))
    return true;
  return !options.user.empty() && info->user == options.user;
}

/// The programs to wait for, as typed.
std::string wanted_words(const LiveOptions& options) {
  std::vector<std::string> wanted;
  if (options.all) return "a process";
  for (const std::string& pid : options.pids) wanted.push_back("process " + pid);
  if (!options.container.empty()) wanted.push_back("a process of container " + options.container);
  if (!options.job.empty()) wanted.push_back("a process of job " + options.job);
  if (!options.user.empty()) wanted.push_back("a process of user " + options.user);
  return printable(fmt::format("{}", fmt::join(wanted, " or ")));
}

/// The trace file gets its name once there is a process to trace; until then, a file of that name stays. Output that is
/// not a file (/dev/stdout, a pipe) is written at once.
class TraceName {
 public:
  explicit TraceName(std::string path) : path_(std::move(path)), draft_(path_) {
    if (const std::size_t at = path_.find("%p"); at != std::string::npos)
      path_.replace(at, 2, std::to_string(::getpid()));
    std::error_code error;
    const auto status = std::filesystem::symlink_status(path_, error);
    const bool is_plain = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
    draft_ = is_plain ? path_ + ".new" : path_;
  }
  TraceName(const TraceName&) = delete;
  TraceName& operator=(const TraceName&) = delete;
  ~TraceName() {
    std::error_code ignored;
    if (draft_ != path_) std::filesystem::remove(draft_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& draft() const { return draft_; }
  Status keep() {
    std::error_code error;
    if (draft_ != path_) std::filesystem::rename(draft_, path_, error);
    if (error) return fail(fmt::format("cannot write the trace {}: {}", path_, error.message()));
    draft_ = path_;
    return {};
  }

 private:
  std::string path_, draft_;
};

/// Live bytes per line, with the growth since the screen before last.
class LiveTable {
 public:
  LiveTable(const telemetry::Recording& recording, const TraceOptions& options)
      : recording_(recording),
        native_(native_names()),
        names_(recording.live(), symbols_, native_.get(), trace::OwnCode(options.libraries, options.own)),
        lines_(std::max<std::size_t>(options.top, 1)) {}

  std::string text(double seconds) {
    const trace::Profile now = trace::profile_of(recording_.live(), names_, trace::MemorySpace::device);
    if (first_.empty()) first_ = now, first_s_ = seconds;
    const trace::Profile grown = trace::difference(first_, now);
    std::string out;
    for (const auto& process : recording_.live().processes())
      out += fmt::format("{:>10}  pid {}  {}\n",
                         format_bytes(static_cast<double>(process->live_bytes(trace::MemorySpace::device))),
                         process->process().pid, process->command().substr(0, 80));
    out +=
        fmt::format("\n{:>10} {:>12} {:>8}  line (allocated since the trace began)\n", "live", "growth/min", "blocks");
    const auto growth = trace::by_line(grown, names_.line_of());
    const double minutes = std::max(seconds - first_s_, 1.0) / 60;
    std::size_t shown = 0;
    for (const trace::LineBytes& line : trace::by_line(now, names_.line_of())) {
      if (shown++ == lines_) break;
      const auto grew = std::find_if(growth.begin(), growth.end(),
                                     [&](const trace::LineBytes& each) { return each.frame == line.frame; });
      const double bytes = grew == growth.end() ? 0 : static_cast<double>(grew->bytes);
      out += fmt::format("{:>10} {:>12} {:>8}  {}\n", format_bytes(static_cast<double>(line.bytes)),
                         format_bytes(bytes / minutes), line.blocks, trace::site_words(symbols_, line.frame));
    }
    out += fmt::format("\n{:.0f} s, {} allocations and frees{}; Ctrl-C ends it\n", seconds, recording_.events(),
                       recording_.lost() == 0 ? "" : fmt::format(", {} lost", recording_.lost()));
    return out;
  }

 private:
  const telemetry::Recording& recording_;
  trace::Symbols symbols_;
  std::unique_ptr<trace::NativeNames> native_;
  trace::ProbeNames names_;
  std::size_t lines_;
  trace::Profile first_;
  double first_s_ = 0;
};

/// Memory of the traced processes that no library was asked for.
class BelowLibraries {
 public:
  explicit BelowLibraries(telemetry::KernelMemory kernel) : kernel_(std::move(kernel)) {}

  /// Call this every second: a process can be queried only while it lives.
  void look(telemetry::Recording& recording) {
    for (const std::uint32_t pid : recording.pids()) {
      const auto held = kernel_.held(pid);
      if (!held) continue;
      recording.held(pid, held->bytes);
      // What a framework has taken from the driver counts once, including its cache.
      std::int64_t seen_bytes = 0;
      std::map<std::string_view, std::int64_t> unsized;
      for (const auto& process : recording.live().processes()) {
        if (process->process().pid != pid || process->has_exit()) continue;
        seen_bytes += process->live_bytes(trace::MemorySpace::device) + process->cached_bytes();
        for (const trace::CallSite& site : process->sites())
          if (site.live.blocks > 0 && site.live.bytes == 0)
            unsized[probe::info_of(site.call)->name] += site.live.blocks;
      }
      below_[pid] = {telemetry::below_the_libraries(*held, seen_bytes), *held, kernel_.given(pid).objects, unsized};
    }
  }
  /// One line for each process that holds such memory.
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const auto& [pid, below] : below_) {
      if (below.bytes <= 0) continue;
      out += fmt::format("pid {}: {} below the libraries: according to {}, it holds {} more than when tracing began{}",
                         pid, format_bytes(static_cast<double>(below.bytes)), below.held.by,
                         format_bytes(static_cast<double>(below.held.bytes)),
                         below.objects > 0 ? fmt::format(", and was given {} objects", below.objects) : "");
      std::string_view before = "; among it, of unknown size: ";
      for (const auto& [call, count] : below.unsized)
        out += fmt::format("{}{} {}", std::exchange(before, ", "), call, count);
      out += '\n';
    }
    return out;
  }

 private:
  struct Below {
    std::int64_t bytes = 0;
    telemetry::KernelHeld held;
    std::uint64_t objects = 0;
    std::map<std::string_view, std::int64_t> unsized;  ///< blocks of unreported size, by call
  };
  telemetry::KernelMemory kernel_;
  std::map<std::uint32_t, Below> below_;  ///< keyed by pid
};

int run_live(const LiveOptions& given, Console& console) {
  LiveOptions options = given;
  const auto pids = pids_of(options);
  if (!pids) return trace_failed(console, pids.error());
  if (pids->empty() && options.container.empty() && options.job.empty() && options.user.empty() && !options.all)
    return trace_failed(console, {"choose what to trace: --pid, --container, --job, --user or --all"});
  if (!options.user.empty()) {
    auto listed = listed_user(options.user);
    if (!listed)
      return trace_failed(console, {fmt::format("--user: there is no user '{}' here", printable(options.user))});
    options.user = std::move(*listed);
  }
  TraceName output(options.trace.output.empty() ? "vramtrack.live.%p.trace" : options.trace.output);
  std::vector<trace::ProbeProcess> named;
  std::string scratch;
  for (const std::uint32_t pid : *pids) {
    const auto now = process_alive("/proc", pid, scratch);
    named.push_back({pid, now ? now->start_ticks : 0, 0, {}});
  }
  auto recording = telemetry::Recording::begin(output.draft(), "programs that were already running",
                                               [&](std::uint32_t pid) { return is_selected(options, *pids, pid); });
  if (!recording) return trace_failed(console, recording.error());
  telemetry::KernelMemory::Options below_options;
  below_options.nvidia_ioctls = options.nvidia_ioctls;
  auto kernel = telemetry::KernelMemory::open(std::move(below_options));
  if (!kernel && options.nvidia_ioctls) return trace_failed(console, kernel.error());
  if (!kernel) console.warn(kernel.error().message);
  std::optional<BelowLibraries> below;
  if (kernel) below.emplace(std::move(*kernel));
  Block block(console);
  LiveTable table(**recording, options.trace);
  const auto begun = std::chrono::steady_clock::now();
  const auto elapsed_s = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  auto look = begun, show = begun + kShowEvery;
  bool is_first = true, had_target = false;
  while (!Interrupt::requested() && (!options.seconds || elapsed_s() < *options.seconds)) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= look) {
      look = now + kLookEvery;
      if (Status found = (*recording)->find_targets(); !found) return trace_failed(console, found.error());
      if (Status written = (*recording)->flush(); !written) return trace_failed(console, written.error());
      if (below) below->look(**recording);
      block.erase();
      for (const std::string& warning : (*recording)->take_warnings()) console.warn(warning);
      if (is_first && !(*recording)->has_target())
        console.write(
            fmt::format("waiting for {} that uses a GPU library that can be traced (CUDA's driver, HIP, OpenCL, "
                        "Vulkan, Level Zero, PyTorch); Ctrl-C ends it\n",
                        wanted_words(options)));
      is_first = false;
      if (!had_target && (*recording)->running() > 0) {
        had_target = true;
        if (Status kept = output.keep(); !kept) return trace_failed(console, kept.error());
        console.write(fmt::format("tracing {} process{}; memory allocated before is not counted\n",
                                  (*recording)->running(), (*recording)->running() == 1 ? "" : "es"));
      }
      // The named programs and all that they started have ended.
      if (had_target && (*recording)->running() == 0 && !named.empty() &&
          std::none_of(named.begin(), named.end(), lives))
        break;
    }
    if (console.is_terminal() && now >= show) {
      show = now + kShowEvery;
      block.draw(table.text(elapsed_s()) + (below ? below->text() : ""));
    }
    if (Status polled = (*recording)->poll(100); !polled) return trace_failed(console, polled.error());
  }
  block.erase();
  if (below) below->look(**recording);
  if (Status written = (*recording)->finish(); !written) return trace_failed(console, written.error());
  if (!(*recording)->has_target())
    return trace_failed(console, {"none of the chosen processes uses a GPU library that can be traced (CUDA's driver, "
                                  "HIP, OpenCL, Vulkan, Level Zero, PyTorch); "
                                  "'vramtrack doctor' shows what was found here"});
  const std::uint64_t lost = (*recording)->lost(), unknown = (*recording)->unknown();
  recording->reset();  // the probes are removed before the report is made
  if (lost > 0) console.warn(telemetry::lost_words(lost));
  if (unknown > 0)
    console.warn(fmt::format(
        "{} allocations or frees are not in the trace: their processes ended before they could be examined{}", unknown,
        options.all ? "" : ", and some may belong to processes that were not chosen"));
  if (Status kept = output.keep(); !kept) return trace_failed(console, kept.error());
  if (below) console.write(below->text());
  console.write(fmt::format("wrote {}\n", printable(output.path())));
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(output.path(), ignored))
    return 0;  // a pipe or /dev/null: there is nothing to read back
  TraceOptions report = options.trace;
  report.files = {output.path()};
  report.output.clear();
  return report_traces(report, console);
}

#else

int run_live(const LiveOptions&, Console& console) {
  return trace_failed(console, {fmt::format("this build cannot trace running programs: {}. Use 'vramtrack run' or "
                                            "'vramtrack attach'",
                                            why_no_telemetry())});
}

#endif

Runner declare_live(Arguments& arguments) {
  const auto options = std::make_shared<LiveOptions>();
  arguments.list("--pid", "PIDS", "Processes to trace, with their children", text(options->pids));
  arguments.option("--container", "ID", "The processes of the container whose id begins with this",
                   text(options->container));
  arguments.option("--job", "ID", "The processes of a Slurm job, or of one of its steps", text(options->job));
  arguments.option("--user", "NAME", "The processes of a user", text(options->user));
  arguments.flag("--all", "All processes that use a GPU library", options->all);
  arguments.flag(
      "--nvidia-ioctls",
      "Experimental: also count what NVIDIA's kernel module hands out, and show memory that no library was asked for",
      options->nvidia_ioctls);
  arguments.option("--duration", "DURATION", "End after this time (default: at Ctrl-C, or when the process ends)",
                   duration(options->seconds));
  arguments
      .option("--output", "FILE", "The trace file; %p is the id of this process (default vramtrack.live.%p.trace)",
              file_to_write(options->trace.output))
      .file();
  constexpr std::uint64_t kMostLines = 1000;
  arguments.option(
      "--top", "NUMBER", "How many lines to show (default 10)",
      whole_number([options](std::uint64_t lines) { options->trace.top = static_cast<std::uint32_t>(lines); }, 1,
                   kMostLines));
  arguments.list("--library", "PREFIXES", "Paths with this prefix are libraries, not your own code",
                 text(options->trace.libraries));
  arguments.list("--own", "PREFIXES", "Paths with this prefix are your own code, wherever they are",
                 text(options->trace.own));
  return until_interrupted([options](Console& console) { return run_live(*options, console); });
}

}  // namespace

const CommandInfo trace_live_verb{
    "live", "Trace programs that are already running, without a restart",
    "Examples:\n"
    "  sudo vramtrack trace live --pid 4711\n"
    "  sudo vramtrack trace live --user alice --duration 60s --output alice.trace\n"
    "Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE (docs/trace.md).\n"
    "Exit: 0 nothing leaks, or the trace is too short to tell; 1 a site leaks; 2 could not trace.",
    declare_live};

}  // namespace vramtrack::cli
