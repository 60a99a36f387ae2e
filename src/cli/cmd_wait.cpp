// wait: waits until memory on a GPU is free, or until processes have released it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "host/process.hpp"
#include "host/user.hpp"
#include "live/ledger_reader.hpp"
#include "live/wait.hpp"

namespace vramtrack::cli {
namespace {

using std::chrono::steady_clock;

constexpr int kMet = 0;
constexpr int kTimedOut = 1;
constexpr int kFailed = 2;
/// If nothing changes, the message that it is still waiting is repeated after this long.
constexpr double kPrintAgain_s = 60;

struct WaitOptions {
  ConfigRequest config;
  WaitFor what;
  std::optional<double> timeout_s;
  bool json = false;
};

std::chrono::nanoseconds of_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

/// Returns what is wrong, or an empty string. A condition may also follow from the options given.
std::string complete(WaitFor& what) {
  if (what.is_gone && what.pids.empty())
    return "--gone is about a process; name it with --pid, or wait for users and containers with --empty";
  if (!what.free_bytes && !what.is_gone && what.names_processes()) what.is_empty = true;
  if (what.free_bytes && what.names_processes() && !what.is_gone && !what.is_empty)
    return "--free is about a whole GPU; leave out --pid, --user and --container, or add --empty or --gone";
  if (!what.free_bytes && !what.is_gone && !what.is_empty)
    return "choose what to wait for: --free 20GiB, --empty, --pid N --gone, --user or --container";
  for (std::string& user : what.users) {
    auto listed = listed_user(user);
    if (!listed)
      return fmt::format("there is no user {} on this machine; 'vramtrack holders' shows the users of processes", user);
    user = std::move(*listed);
  }
  return {};
}

/// Reports what has changed since the last time.
class Teller {
 public:
  Teller(const WaitOptions& options, Console& console, steady_clock::time_point begin)
      : options_(options), console_(console), begin_(begin) {}

  [[nodiscard]] double waited_s() const { return std::chrono::duration<double>(steady_clock::now() - begin_).count(); }
  void print(const WaitLook& look) {
    std::string signature = wait_signature(look);
    const double now_s = waited_s();
    if (signature == printed_ && now_s - printed_at_s_ < kPrintAgain_s) return;
    printed_ = std::move(signature);
    printed_at_s_ = now_s;
    if (options_.json)
      console_.write(wait_json(look, "waiting", now_s));
    else
      console_.write(fmt::format("{} for {}:\n{}",
                                 is_first_ ? "waiting" : fmt::format("after {}, still waiting", format_duration(now_s)),
                                 printable(wait_words(options_.what)), wait_text(look)));
    is_first_ = false;
  }
  [[nodiscard]] bool is_first() const { return is_first_; }
  int met(const WaitLook& look) {
    if (options_.json)
      console_.write(wait_json(look, "met", waited_s()));
    else
      console_.write(met_words(look));
    return kMet;
  }
  int timed_out(const WaitLook& look) {
    if (options_.json)
      console_.write(wait_json(look, "timeout", waited_s()));
    else
      console_.error(
          fmt::format("gave up after waiting {} for {}:\n{}  'vramtrack holders' as root shows more; 'vramtrack "
                      "reclaim' ends orphaned workers",
                      format_duration(*options_.timeout_s), printable(wait_words(options_.what)), wait_text(look)));
    return kTimedOut;
  }

 private:
  [[nodiscard]] std::string met_words(const WaitLook& look) const {
    std::string out = is_first_ ? "nothing to wait for" : fmt::format("met after {}", format_duration(waited_s()));
    for (const WaitDevice& one : look.devices)
      if (one.free_bytes)
        out += fmt::format("{}{} has {} free", &one == &look.devices.front() ? ": " : ", ", device_words(one.device),
                           format_bytes(static_cast<double>(*one.free_bytes)));
    return printable(out) + '\n';
  }

  const WaitOptions& options_;
  Console& console_;
  steady_clock::time_point begin_;
  std::string printed_;
  double printed_at_s_ = 0;
  bool is_first_ = true;
};

int wait(const WaitOptions& given, const LayeredConfig& layers, Console& console) {
  WaitOptions options = given;
  if (const std::string wrong = complete(options.what); !wrong.empty()) {
    console.error(printable(wrong));
    return kFailed;
  }
  const Config& config = layers.config();
  LedgerReader reader(config.sources, [&console](const std::string& text) { console.warn(text); });
  if (!reader.is_open()) {
    console.error(fmt::format("no GPU found: {}; 'vramtrack doctor' shows what to do", reader.reasons()));
    return kFailed;
  }
  std::string path;
  Waiting waiting(options.what, [&](std::uint32_t pid) -> std::optional<std::uint64_t> {
    const auto alive = process_alive(config.sources.proc_root, pid, path);
    return alive ? std::optional(alive->start_ticks) : std::nullopt;
  });
  const auto begin = steady_clock::now();
  Teller printer(options, console, begin);
  while (true) {
    const auto look = waiting.look(reader.look());
    if (!look) {
      console.error(look.error().message);
      return kFailed;
    }
    if (look->is_met()) return printer.met(*look);
    const bool is_over = options.timeout_s && printer.waited_s() >= *options.timeout_s;
    // The first result is shown even if the time was up before it.
    if (!is_over || printer.is_first()) printer.print(*look);
    if (is_over) return printer.timed_out(*look);
    if (console.failed()) return kFailed;
    auto next = steady_clock::now() + of_seconds(config.watch.interval_seconds);
    // The last check is at the end of the time.
    if (options.timeout_s) next = std::min(next, begin + of_seconds(*options.timeout_s));
    std::this_thread::sleep_until(next);
  }
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<WaitOptions>();
  WaitFor& what = options->what;
  arguments.list("--gpu", "N", "Wait for these GPUs only: numbers or UUIDs (default: all)",
                 [&what](const std::string& word) -> Status {
                   what.gpus.push_back(word);
                   return {};
                 });
  arguments.option("--free", "SIZE", "Wait until this much memory is free on each of the GPUs: 20GiB",
                   device_memory([&what](std::uint64_t bytes) { what.free_bytes = bytes; }));
  arguments.flag("--empty", "Wait until no process holds GPU memory and none is left over", what.is_empty)
      .in_manual(
          "Services of the driver and of the display do not count, and neither does what the driver keeps for itself.");
  constexpr std::uint64_t kMostPids = 0xffffffffU;
  arguments.list(
      "--pid", "N", "Wait until this process holds no GPU memory; with --gone, until it has ended",
      whole_number([&what](std::uint64_t n) { what.pids.push_back(static_cast<std::uint32_t>(n)); }, 1, kMostPids));
  arguments
      .flag("--gone", "With --pid: wait until the process has ended and the driver no longer lists it", what.is_gone)
      .in_manual("A later process with the same pid is another process: start times distinguish them.");
  arguments.list("--user", "NAME", "Wait until no process of this user holds GPU memory", text(what.users));
  arguments.list("--container", "ID", "Wait until no process of this container or pod (by UID) holds GPU memory",
                 text(what.containers));
  arguments.option("--timeout", "DURATION", "Give up after this long (default: never)", duration(options->timeout_s));
  add_interval(arguments, options->config);
  arguments.json("Print JSON lines (docs/wait.md)", options->json);
  add_sources(arguments, options->config);
  add_config(arguments, options->config);
  return configured<WaitOptions>(options, wait);
}

}  // namespace

const CommandInfo wait_command{
    "wait", "Wait until GPU memory is free, and show who holds it meanwhile",
    "Examples:\n"
    "  vramtrack wait --gpu 0 --free 20GiB --timeout 90s\n"
    "  vramtrack wait --pid 4242 --gone\n"
    "  vramtrack wait --gpu \"$SLURM_JOB_GPUS\" --empty --timeout 30s    in the epilog of a job\n"
    "  vramtrack wait --user ada --timeout 10min\n"
    "Exit: 0 condition met, 1 timed out, 2 failed.",
    declare};

}  // namespace vramtrack::cli
