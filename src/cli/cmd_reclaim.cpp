// reclaim: ends workers that hold a GPU although the process that started them has ended.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>
#include <thread>

#include "act/reclaim.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "live/clock.hpp"
#include "live/containment.hpp"
#include "live/ledger_reader.hpp"

namespace vramtrack::cli {
namespace {

struct ReclaimOptions {
  ConfigRequest config;
  bool yes = false;
  bool dry_run = false;
  std::optional<double> watch_s;
  std::vector<std::string> users;
};

/// How many times to check whether the driver has released the memory.
constexpr int kLooks = 20;
constexpr auto kLook = std::chrono::milliseconds(250);

/// The framework of a process; empty if not recognised.
std::string framework_of(const LedgerReader& machine, const ProcessInfo& process) {
  const ProcessInfo* known = machine.catalog().process({process.pid, process.start_ticks, {}});
  return known == nullptr ? "" : known->framework;
}

/// A holder, with the memory that it holds on all GPUs together.
struct Candidate {
  Holder holder;
  std::uint64_t bytes = 0;
  DeviceInfo device;
};

std::vector<Candidate> candidates_of(const Ledger& ledger) {
  std::vector<Candidate> out;
  const auto add = [&out](const Holder& holder, std::uint64_t bytes, const DeviceInfo& device) {
    const auto same = [&](const Candidate& c) { return c.holder.info.pid == holder.info.pid; };
    const auto known = std::find_if(out.begin(), out.end(), same);
    if (known != out.end())
      known->bytes += bytes;
    else
      out.push_back({holder, bytes, device});
  };
  for (const DeviceLedger& one : ledger.devices) {
    for (const LedgerLine& line : one.lines) add(line.holder, line.bytes.value_or(0), one.device);
    for (const Holder& holder : one.not_listed) add(holder, 0, one.device);
  }
  for (const Holder& holder : ledger.elsewhere) add(holder, 0, {});
  return out;
}

act::Subject subject_of(const Candidate& candidate) {
  act::Subject s;
  const ProcessInfo& info = candidate.holder.info;
  s.process = {info.pid, info.start_ticks, {}};
  s.user = info.user;
  s.command = info.command.empty() ? info.name : info.command;
  s.container = info.container;
  s.pod = info.pod;
  s.job = info.slurm_job;
  s.device_id = candidate.device.id;
  s.device_index = candidate.device.index;
  s.device_name = candidate.device.name;
  s.used_bytes = candidate.bytes;
  s.because = candidate.holder.why;
  return s;
}

std::string held_words(const Candidate& candidate) {
  if (candidate.bytes == 0) return "has a GPU open";
  return "holds " + format_bytes(static_cast<double>(candidate.bytes));
}

/// Asks the person at the terminal for consent.
bool agrees(std::size_t count, Console& console) {
  console.write(fmt::format("End {}? [y/N] ", count == 1 ? "it" : "them"));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

/// A cache looks like a leak to someone who needs the memory.
std::string cache_words(const Candidate& candidate) {
  return fmt::format(
      "left alone: {} {}; it is alive. Memory that PyTorch has cached is not lost: the program reuses it, and only the "
      "program itself can release it, with torch.cuda.empty_cache()",
      act::subject_words(subject_of(candidate)), held_words(candidate));
}

/// Selects the candidates, and explains why others are left alone, except those that are simply alive.
std::vector<Candidate> choose(const std::vector<Candidate>& all, const act::ReclaimBounds& bounds,
                              const LedgerReader& machine, Console& console) {
  std::vector<Candidate> chosen;
  for (const Candidate& candidate : all) {
    const std::string spared = act::why_spared(candidate.holder, bounds);
    const HolderState state = candidate.holder.state;
    if (!spared.empty() && (state == HolderState::alive || state == HolderState::service)) {
      if (candidate.bytes > 0 && framework_of(machine, candidate.holder.info) == "PyTorch")
        console.write(printable(cache_words(candidate)) + '\n');
      continue;
    }
    console.write(printable(fmt::format("{}: {} {}; {}", spared.empty() ? "to end" : "spared",
                                        act::subject_words(subject_of(candidate)), held_words(candidate),
                                        spared.empty() ? candidate.holder.why : spared)) +
                  '\n');
    if (spared.empty()) chosen.push_back(candidate);
  }
  return chosen;
}

/// The total over all GPUs.
std::uint64_t used_bytes(const Ledger& ledger) {
  std::uint64_t sum = 0;
  for (const DeviceLedger& one : ledger.devices) sum += one.used_bytes.value_or(0);
  return sum;
}

/// What the driver reports after `ended` has exited; waits for its memory to be released. Others may take some of it
/// meanwhile, so half of it is enough.
std::string memory_words(LedgerReader& machine, const Candidate& ended, std::uint64_t used_before, bool* is_back) {
  std::uint64_t fell = 0;
  bool is_listed = true;
  for (int i = 0; i < kLooks; ++i) {
    const Ledger ledger = machine.look();
    const auto all = candidates_of(ledger);
    const std::uint64_t used = used_bytes(ledger);
    fell = used < used_before ? used_before - used : 0;
    is_listed = std::any_of(all.begin(), all.end(),
                            [&](const Candidate& c) { return c.holder.info.pid == ended.holder.info.pid; });
    *is_back = !is_listed && 2 * fell >= ended.bytes;
    if (*is_back) break;
    std::this_thread::sleep_for(kLook);
  }
  const std::string amount = format_bytes(static_cast<double>(fell));
  if (*is_back) return ended.bytes == 0 ? "it no longer has a GPU open" : amount + " was freed";
  return fmt::format("{}, and {} of its {} was freed: 'vramtrack holders' shows who else has the GPU open",
                     is_listed ? "the driver still lists it" : "the driver no longer lists it",
                     fell == 0 ? "nothing" : "only " + amount, format_bytes(static_cast<double>(ended.bytes)));
}

int end_all(const std::vector<Candidate>& chosen, const ReclaimOptions& options, const Config& config,
            LedgerReader& machine, Console& console) {
  auto journal = act::Journal::open(act::audit_path(store_path(config.store)));
  if (!journal) {
    console.error(fmt::format("nothing was done: {}; each action must be recorded", journal.error().message));
    return 2;
  }
  act::ReclaimTools tools;
  tools.act.proc_root = config.sources.proc_root;
  tools.boot_id = machine_clock().boot_id;
  tools.now = time_of_day;
  tools.sleep = [](double s) { std::this_thread::sleep_for(std::chrono::duration<double>(s)); };
  if (options.watch_s) tools.watch_s = *options.watch_s;
  std::vector<act::Subject> subjects;
  std::transform(chosen.begin(), chosen.end(), std::back_inserter(subjects), subject_of);
  console.write(fmt::format("Watching {} for up to {}: whatever still works is left alone.\n",
                            chosen.size() == 1 ? "it" : "them", format_duration(tools.watch_s)));
  const std::vector<std::string> life = act::signs_of_life(subjects, tools);
  int exit_code = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Candidate& candidate = chosen[i];
    const act::Subject& subject = subjects[i];
    const std::uint64_t used_before = used_bytes(machine.look());
    const auto outcome = act::reclaim(subject, life[i], tools, *journal);
    bool is_back = false;
    const std::string text = outcome ? *outcome + "; " + memory_words(machine, candidate, used_before, &is_back)
                                     : "failed: " + outcome.error().message;
    if (!is_back) exit_code = 1;
    console.write(printable(act::subject_words(subject) + ": " + text) + '\n');
  }
  return exit_code;
}

int reclaim(const ReclaimOptions& options, const LayeredConfig& layers, Console& console) {
  const Config& config = layers.config();
  const bool is_interactive = ::isatty(STDIN_FILENO) == 1;
  if (!options.yes && !options.dry_run && !is_interactive) {
    console.error(
        "nothing was done: there is no terminal to ask for confirmation on; pass --yes, or --dry-run to see what would "
        "be done");
    return 2;
  }
  LedgerReader machine(config.sources, [&console](const std::string& text) { console.warn(text); });
  if (!machine.is_open()) {
    console.error(fmt::format("no GPU found: {}; 'vramtrack doctor' shows what to do", machine.reasons()));
    return 2;
  }
  act::ReclaimBounds bounds;
  bounds.own_user = own_user_name();
  bounds.users.insert(options.users.begin(), options.users.end());
  bounds.is_root = ::geteuid() == 0;
  bounds.protected_pids = act::self_and_above(config.sources.proc_root, static_cast<std::uint32_t>(::getpid()));
  const Ledger ledger = machine.look();
  const std::vector<Candidate> chosen = choose(candidates_of(ledger), bounds, machine, console);
  if (chosen.empty()) {
    console.write("There is no process to end.\n");
    return 0;
  }
  if (options.dry_run) {
    console.write("Nothing was done: this is a dry run.\n");
    return 0;
  }
  if (!options.yes && !agrees(chosen.size(), console)) {
    console.write("Nothing was done.\n");
    return 0;
  }
  return end_all(chosen, options, config, machine, console);
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<ReclaimOptions>();
  arguments.flag("--yes", "Do not ask", options->yes);
  arguments.flag("--dry-run", "Print what would be done, and do nothing", options->dry_run);
  arguments.option("--watch", "DURATION", "End only what shows no sign of life for this long (default: 65s)",
                   duration(options->watch_s));
  arguments.repeated("--user", "NAME", "As root: also end processes of this user", text(options->users));
  add_sources(arguments, options->config);
  add_config(arguments, options->config);
  return configured<ReclaimOptions>(options, reclaim);
}

}  // namespace

const CommandInfo reclaim_command{"reclaim",
                                  "End orphaned workers that still hold a GPU (their parent process has ended)",
                                  "Examples:\n"
                                  "  vramtrack reclaim --dry-run\n"
                                  "  vramtrack reclaim\n"
                                  "  sudo vramtrack reclaim --user ada --yes\n"
                                  "Each action is recorded next to the store (docs/formats/acts.md).\n"
                                  "Exit: 0 done or nothing to do, 1 a process or its memory remains, 2 failed.",
                                  declare};

}  // namespace vramtrack::cli
