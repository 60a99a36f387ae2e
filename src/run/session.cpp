#include "run/session.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "core/errno_words.hpp"
#include "core/format.hpp"
#include "core/option.hpp"
#include "core/printable.hpp"
#include "host/cgroup.hpp"
#include "host/oom_kills.hpp"
#include "live/loop.hpp"
#include "run/client/ask.hpp"
#include "run/control.hpp"
#include "run/driver_names.hpp"
#include "run/library_folder.hpp"
#include "run/probe_library.hpp"
#include "run/probe_source.hpp"
#include "run/process_facts.hpp"
#include "run/run_lifetimes.hpp"
#include "run/run_trace.hpp"
#include "run/signals.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::run {
namespace {

/// A ring has room for half a million records, which is 50 ms at 10 million per second.
constexpr std::chrono::milliseconds kLookEvery{50};
/// With a limit, the search for processes that escape it is more frequent: a short-lived one must not be missed.
constexpr std::chrono::milliseconds kLookForEscapesEvery{2};
constexpr std::chrono::milliseconds kLookAtYoungEvery{1};
/// The search takes at most this fraction of a core.
constexpr int kEscapesPause = 50;
constexpr std::chrono::seconds kHoldersEvery{10};

/// The folder of the rings and the control socket; removed with this object.
class RunFolder {
 public:
  static Result<RunFolder> make() {
    const auto runs = runs_folder();
    if (!runs) return fail(runs.error());
    RunFolder folder;
    folder.path_ = fmt::format("{}/{}", *runs, ::getpid());
    std::error_code ignored;
    std::filesystem::remove_all(folder.path_, ignored);  // left by an earlier process with this pid
    if (::mkdir(folder.path_.c_str(), 0700) != 0)
      return fail(fmt::format("{}: {}", std::exchange(folder.path_, ""), errno_words(errno)));
    return folder;
  }
  RunFolder(RunFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  RunFolder() = default;
  std::string path_;
};

class Session {
 public:
  Session(const RunSettings& settings, const Config& config, const RunListener& listener, std::string folder)
      : settings_(settings),
        listener_(listener),
        folder_(std::move(folder)),
        trace_(settings.output, settings.program, listener.warn),
        collector_(
            folder_, [this](const auto& process, const auto& records) { take(process, records); }, listener.warn),
        lifetimes_(listener.alert
                       ? std::make_unique<RunLifetimes>(listener.native_names ? listener.native_names() : nullptr)
                       : nullptr),
        loop_(config, input(config), machine_clock()) {
    collector_.set_limits(settings.limits);
    Listener engine_listener;
    engine_listener.warning = listener_.warn;
    engine_listener.alert = [this](const AlertNotice& change) {
      if (listener_.alert) listener_.alert(change);
    };
    engine_listener.tick = [this](const Batch& batch) { note_driver_figures(batch); };
    loop_.pipeline().listen(std::move(engine_listener));
  }

  Result<RunOutcome> run(const ProbeLibrary& library) {
    if (Status can = trace_.can_be_written(); !can) return fail(can.error());
    auto control = ControlSocket::open(folder_);
    if (!control) listener_.warn("no control socket: " + control.error().message);
    collector_.make_spares();
    if (settings_.kept)
      if (Status written = write_kept_script(); !written)
        listener_.warn("vramtrack will not look for what keeps memory: " + written.error().message);
    const auto pid =
        start_program(settings_.program, probe_environment(library, folder_, settings_.limits, settings_.exact));
    if (!pid) return fail(pid.error());
    escapes_.follow(static_cast<std::uint32_t>(*pid));
    oom_.begin();
    oom_.remember(cgroup_);
    RunOutcome outcome;
    for (std::optional<ProgramEnd> end; !end;) {
      wait();
      LauncherSignals::pass_on(*pid);
      end = ended_program(*pid);
      if (end) outcome.left_behind = left_behind();
      look(end.has_value());
      for (int i = LauncherSignals::marks(); i > 0; --i) mark("signal");
      if (control) control->serve([this](const ControlRequest& request) { return answer(request); });
      report_out_of_memory();
      if (loop_.clock().steady() >= loop_.next()) second();
      if (end) outcome.end = *end;
      if (end) report_host_out_of_memory(static_cast<std::uint32_t>(*pid), *end);
    }
    finish(outcome);
    return outcome;
  }

 private:
  LoopInput input(const Config& config) {
    LoopInput input;
    input.catalog = std::make_unique<Catalog>();
    std::string reasons;
    input.sources = open_live_sources(config.sources, *input.catalog, reasons);
    input.sources.push_back(
        {"probe", std::make_unique<ProbeSource>(collector_, facts_, lifetimes_.get(), *input.catalog), {}, {}});
    return input;
  }

  /// Writes the script to the place where the probe looks for it.
  Status write_kept_script() {
    const std::string path = folder_ + probe::kKeptScript;
    std::ofstream file(path, std::ios::binary);
    file << kept_script();
    file.close();
    return file ? Status{} : fail(fmt::format("{}: {}", path, errno_words(errno)));
  }

  /// Waits until the rings must be read, or a signal arrives.
  void wait() {
    const SteadyTime until = loop_.clock().steady() + kLookEvery;
    for (SteadyTime now = loop_.clock().steady(); now < until; now = loop_.clock().steady()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min(until, next_escapes_) - now);
      if (left.count() > 0 && ::poll(nullptr, 0, static_cast<int>(left.count())) < 0) break;
      if (loop_.clock().steady() >= next_escapes_) look_for_escapes();
    }
  }

  /// Examines all processes of the run at a rate that costs little, and in between each young one without the probe.
  void look_for_escapes() {
    const SteadyTime begin = loop_.clock().steady();
    const std::uint64_t limit = collector_.limits().limit_bytes;
    const bool is_whole = begin >= next_whole_look_;
    for (const EscapedProcess& each : is_whole ? escapes_.look() : escapes_.look_at_doubtful())
      listener_.warn(fmt::format("process {} ({}) has loaded {} without the probe: it is not recorded{}", each.pid,
                                 printable(each.command), printable(each.library),
                                 limit > 0 ? ", and the limit does not apply to it" : ""));
    const SteadyTime end = loop_.clock().steady();
    if (is_whole)
      next_whole_look_ = end + std::max<SteadyTime::duration>(limit > 0 ? kLookForEscapesEvery : kLookEvery,
                                                              kEscapesPause * (end - begin));
    next_escapes_ =
        limit > 0 && escapes_.has_young() ? std::min(next_whole_look_, end + kLookAtYoungEvery) : next_whole_look_;
  }

  /// The facts of a process exist from the moment its ring is found, even without records.
  void look(bool is_over) {
    const std::size_t known = collector_.processes().size();
    collector_.find_new();
    if (collector_.processes().size() > known) collector_.make_spares();
    facts_.resize(collector_.processes().size());
    collector_.look(is_over);
  }

  /// The processes that continue to run after the program has ended.
  std::vector<std::uint32_t> left_behind() {
    collector_.find_new();
    return collector_.alive();
  }

  void take(const ProbedProcess& process, std::span<const probe::Slot> records) {
    trace_.take(process, records, facts_.at(process.index));
    if (lifetimes_) lifetimes_->take(process, records);
  }

  void mark(const std::string& name) {
    for (const ProbedProcess& process : collector_.processes())
      if (collector_.is_running(process.index)) trace_.mark(process, name);
  }

  std::string answer(const ControlRequest& request) {
    Limits limits = collector_.limits();
    if (request.limit_bytes) limits.limit_bytes = *request.limit_bytes;
    if (request.soft_limit_bytes) limits.soft_limit_bytes = *request.soft_limit_bytes;
    if (request.limit_bytes || request.soft_limit_bytes) {
      collector_.set_limits(limits);
      for (const ProbedProcess& process : collector_.processes())
        if (collector_.is_running(process.index)) trace_.limits(process, limits);
      passed_soft_.clear();
    }
    if (request.mark) mark(*request.mark);
    if (request.kept) return answer_kept(*request.kept);
    if (request.asks_categories) return answer_categories();
    if (request.asks_report) {
      const std::string report = listener_.report ? listener_.report() : std::string();
      return report.empty() ? "error: there is no report yet: ask again in a few seconds" : "ok " + report;
    }
    std::string text = fmt::format("ok limit={} soft-limit={} processes=", limits.limit_bytes, limits.soft_limit_bytes);
    std::string_view separator;
    for (const ProbedProcess& process : collector_.processes()) {
      if (!collector_.is_running(process.index)) continue;
      std::int64_t held = 0;
      for (std::size_t device = 0; device < probe::kMostDevices; ++device)
        held += collector_.held_bytes(process.index, device);
      text += fmt::format("{}{}:{}", separator, process.pid, held);
      separator = ",";
    }
    return text;
  }

  std::string answer_categories() const {
    if (!lifetimes_) return fmt::format("error: only a run with {} sums memory by category", name_of(Option::watch));
    std::string text = "ok";
    for (const ProcessCategories& process : lifetimes_->categories()) {
      text += fmt::format(" {}:", process.pid);
      std::string_view separator;
      for (const auto& [category, bytes] : process.bytes) {
        text += fmt::format("{}{}={}", separator, trace::category_name(category), bytes);
        separator = ",";
      }
    }
    return text;
  }

  /// 0 requests a search and returns its number; other numbers request a result, because a search outlasts an answer.
  std::string answer_kept(std::uint64_t number) {
    if (number == 0) {
      looks_before_.clear();
      for (const ProbedProcess& process : collector_.processes())
        if (collector_.is_running(process.index)) looks_before_[process.index] = facts_[process.index].looks();
      collector_.ask_kept();
      return fmt::format("ok asked {}", ++kept_requests_);
    }
    if (number != kept_requests_) return "error: somebody has asked again since";
    std::string text = "ok found";
    for (const auto& [index, before] : looks_before_) {
      const ProcessFacts& facts = facts_[index];
      if (facts.looks() == before) {
        if (collector_.is_running(index)) return "ok waiting";
        continue;
      }
      const auto line = [&text, pid = collector_.processes()[index].pid](std::string_view kind,
                                                                         const std::string& words) {
        text += fmt::format("\t{}{} {}", kind, pid, printable(words));
      };
      for (const std::string& keeper : facts.newest_look().keepers) line("", keeper);
      if (!facts.newest_look().why.empty()) line("!", facts.newest_look().why);
    }
    return text;
  }

  void report_out_of_memory() {
    for (const ProbedProcess& process : collector_.processes())
      for (const MemoryOut& out : facts_[process.index].memory_outs()) {
        // A program may survive failed allocations for hours, and the holders at one failure may differ from those
        // at the next, so they are noted again.
        if (const SteadyTime now = loop_.clock().steady(); now >= next_holders_) {
          next_holders_ = now + kHoldersEvery;
          note_holders();
          trace_.flush();
        }
        if (std::exchange(has_reported_out_, true)) continue;
        listener_.warn(fmt::format("process {} asked for {} on {} and {}", process.pid, format_size(out.asked_bytes),
                                   device_words(process, out.device),
                                   out.by_limit ? "the limit refused it" : "the device had no room for it"));
      }
  }

  /// A program that was killed, or that reports this of its child (137), may have hit the end of the host's memory,
  /// which is not a GPU error.
  void report_host_out_of_memory(std::uint32_t pid, const ProgramEnd& end) {
    constexpr int kKilled = 128 + SIGKILL;
    if (end.signal != SIGKILL && end.exit_code.value_or(0) != kKilled) return;
    if (const auto kill = oom_.ended(pid, cgroup_))
      listener_.warn(fmt::format("the kernel ended the program because {} ran out: host memory, not the GPU's",
                                 kill->cgroup.empty() ? std::string("the machine's memory")
                                                      : "the memory of cgroup " + printable(kill->cgroup)));
  }

  [[nodiscard]] std::string device_words(const ProbedProcess& process, int number) const {
    const auto& devices = facts_[process.index].devices();
    const auto known = devices.find(number);
    return printable(trace::device_words(number, known == devices.end() ? std::string() : known->second.name));
  }

  /// Records the memory of all processes now, because a program's records do not show what others held.
  void note_holders() {
    notes_holders_ = true;
    loop_.tick();
    notes_holders_ = false;
  }

  void note_holder(const Sample& sample, const SeriesKey& key) {
    trace::ProbeHolder holder;
    holder.realtime_us = realtime_us();
    holder.device_uuid = key.device_id;
    holder.pid = key.pid;
    holder.bytes = sample.bytes;
    if (const ProcessInfo* process = loop_.catalog().process(process_key(key))) holder.command = process->command;
    trace_.holder(holder);
  }

  void report_soft_limit() {
    const std::uint64_t soft = collector_.limits().soft_limit_bytes;
    if (soft == 0) return;
    for (const ProbedProcess& process : collector_.processes())
      for (std::size_t device = 0; device < probe::kMostDevices; ++device) {
        const std::int64_t most = collector_.above_soft_limit_bytes(process.index, device);
        if (most == 0 || !passed_soft_.insert({process.pid, device}).second) continue;
        listener_.warn(fmt::format("process {} held {} of {}, more than the soft limit of {}", process.pid,
                                   format_size(most), device_words(process, static_cast<int>(device)),
                                   format_size(soft)));
        mark("soft limit");
      }
  }

  void second() {
    loop_.tick();
    report_soft_limit();
    if (lifetimes_ && listener_.late_rise)
      for (const LateRise& rise : lifetimes_->late_rises(static_cast<double>(realtime_us()) * 1e-6))
        listener_.late_rise(rise);
    trace_.flush();
    if (listener_.second && !trace_.path().empty()) listener_.second(trace_.path());
  }

  /// Records the driver's figures for our processes and their devices, to compute the residual.
  void note_driver_figures(const Batch& batch) {
    for (const Sample& sample : batch.samples) {
      const SeriesKey& key = loop_.catalog().key(sample.series);
      if (key.metric != Metric::process_used && key.metric != Metric::device_used) continue;
      if (notes_holders_ && key.metric == Metric::process_used) note_holder(sample, key);
      trace::ProbeReading reading;
      reading.realtime_us = realtime_us();
      reading.device_uuid = key.device_id;
      (key.metric == Metric::process_used ? reading.process_bytes : reading.device_bytes) = sample.bytes;
      for (const ProbedProcess& process : collector_.processes())
        if (process.pid == key.pid || (key.pid == 0 && process.index == 0)) trace_.reading(process, reading);
    }
  }

  void finish(RunOutcome& outcome) {
    report_soft_limit();
    loop_.finish();
    trace_.finish(outcome.end);
    outcome.processes = collector_.processes().size();
    outcome.records = trace_.records();
    outcome.trace = trace_.path();
    outcome.limit_bytes = collector_.limits().limit_bytes;
    outcome.has_driver_calls =
        std::any_of(facts_.begin(), facts_.end(), [](const ProcessFacts& facts) { return facts.has_driver_calls(); });
    outcome.unrecorded = collector_.unrecorded();
    outcome.escaped = escapes_.all();
    outcome.is_incomplete = trace_.has_failed() || !outcome.unrecorded.empty() || !outcome.escaped.empty();
  }

  const RunSettings& settings_;
  const RunListener& listener_;
  const std::string folder_;
  std::vector<ProcessFacts> facts_;
  RunTrace trace_;
  Collector collector_;
  std::unique_ptr<RunLifetimes> lifetimes_;  ///< null: alerts are not reported
  Escapes escapes_{"/proc"};
  OomKills oom_{"/proc", "/sys"};
  const std::string cgroup_ =
      cgroup_of("/proc", static_cast<std::uint32_t>(::getpid())).value_or(CgroupIdentity{}).path;
  Loop loop_;
  SteadyTime next_escapes_{}, next_whole_look_{};
  std::map<std::size_t, std::uint64_t> looks_before_;  ///< by process: time of the last requested search
  std::uint64_t kept_requests_ = 0;
  std::set<std::pair<std::uint32_t, std::size_t>> passed_soft_;
  SteadyTime next_holders_{};
  bool has_reported_out_ = false;
  bool notes_holders_ = false;  ///< while processing the tick after a failed allocation
};

}  // namespace

Result<RunOutcome> run_program(const RunSettings& settings, const Config& config, const RunListener& listener) {
  const LauncherSignals signals;  // created before the first file is written
  const auto library = find_probe(settings.probe_folder);
  if (!library) return fail(library.error());
  const auto folder = RunFolder::make();
  if (!folder) return fail(folder.error());
  const auto loaded = preloadable(with_names_of_driver(*library, library_folders(), listener.warn), library_folders());
  if (!loaded) return fail(loaded.error());
  return Session(settings, config, listener, folder->path()).run(*loaded);
}

}  // namespace vramtrack::run
