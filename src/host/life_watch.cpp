#include "host/life_watch.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "core/ascii.hpp"
#include "host/parentage.hpp"
#include "host/pipes.hpp"
#include "host/process.hpp"
#include "host/process_tree.hpp"
#include "host/small_file.hpp"
#include "host/waits.hpp"

namespace vramtrack {
namespace {

/// The number of looks at which a sign must be seen that may occur once by chance.
constexpr int kLooks = 3;
/// The share of time that a thread that neither polls nor spins computes, or would if it got a core.
constexpr double kPollsBelow = 0.1;
constexpr double kSpinsAbove = 0.9;
/// The least that it computes at a time. A thread that only looks around takes less, even in Python.
constexpr double kTurn_s = 0.0002;
/// The kernel takes pages from a process that only waits, too, and returns them (NUMA balancing, memory pressure).
constexpr double kPages_per_s = 10;
constexpr double kChildrenCores = 0.1;
/// A thread that sleeps for a second or more between two looks around may take some turns at each.
constexpr double kTurnsOfALook_per_s = 3;
/// With less than this share of a core, a process that has work for it cannot show what it does.
constexpr double kStarvedCores = 0.05;
constexpr std::size_t kMostMembers = 1024;
constexpr std::size_t kMostThreads = 4096;

std::uint64_t risen(std::uint64_t from, std::uint64_t to) {
  return to > from ? to - from : 0;
}

/// The number of calls that read and write, and their bytes, from the text of /proc/PID/io. Bytes that a process writes
/// into the mapping of a file count when its pages become dirty; those read from a disk do not count again, as they
/// may be code that the kernel had evicted.
std::uint64_t io_of(std::string_view text) {
  std::uint64_t sum = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (!line.starts_with("cancelled") && !line.starts_with("read_bytes"))
      sum += parse_unsigned(trimmed(line.substr(std::min(line.size(), line.find(':') + 1)))).value_or(0);
  }
  return sum;
}

}  // namespace

LifeWatch::LifeWatch(std::string proc_root, std::span<const ProcessKey> workers) : proc_root_(std::move(proc_root)) {
  for (const ProcessKey& worker : workers) {
    families_.emplace_back().worker = worker;
    alone_.insert(worker.pid);
  }
  const std::vector<ListedProcess> all = list_processes(proc_root_);
  const LostWorkers lost(proc_root_, all);
  for (const ListedProcess& process : all)
    if (const LostWorkers::Found found = lost.of(process.pid); found.is_worker && found.kept.empty())
      alone_.insert(process.pid);
}

LifeWatch::Member LifeWatch::read_member(std::uint32_t pid) const {
  Member out;
  std::array<char, 1024> buffer;
  const std::string folder = proc_root_ + '/' + std::to_string(pid);
  const auto read = [&](const std::string& file) { return read_small_file(file.c_str(), buffer); };
  const auto text = read(folder + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  if (!stat) return out;
  out.start_ticks = std::max<std::uint64_t>(stat->start_ticks, 1);
  out.cpu_ticks = stat->cpu_ticks;
  out.page_faults = stat->page_faults;
  if (const auto io = read(folder + "/io")) out.io = io_of(*io);
  if (const auto call = read(folder + "/wchan")) out.sleeps = call->find("nanosleep") != std::string_view::npos;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder + "/task", error);
       !error && entry != std::filesystem::directory_iterator() && out.threads.size() < kMostThreads;
       entry.increment(error)) {
    const auto tid = parse_unsigned(entry->path().filename().string());
    const auto its = tid ? read(entry->path().string() + "/stat") : std::nullopt;
    const auto known = its ? parse_stat(*its) : std::nullopt;
    if (!known || known->name == kThreadOfDriver) continue;
    out.wants_core = out.wants_core || known->state == 'R';
    Thread& thread = out.threads[static_cast<std::uint32_t>(*tid)];
    // "485544592 50981076 129"; a kernel without it does not report turns.
    const auto counts = read(entry->path().string() + "/schedstat");
    std::string_view rest = counts ? *counts : std::string_view();
    for (std::uint64_t* into : {&thread.ran_ns, &thread.queued_ns, &thread.turns}) {
      const std::string_view word = rest.substr(0, rest.find_first_of(" \n"));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      *into = parse_unsigned(word).value_or(0);
    }
  }
  return out;
}

void LifeWatch::compare(Family& family, const std::map<std::uint32_t, Member>& now, double passed_s) const {
  bool started = false, read_or_wrote = false, in_turns = false, wants_core = false, had_a_turn = false;
  bool looked_around = false;
  std::uint64_t pages = 0, ticks = 0, children_ticks = 0;
  for (const auto& [pid, is] : now) {
    const auto before = family.members.find(pid);
    if (before == family.members.end() || before->second.start_ticks != is.start_ticks) {
      started = true;
      continue;
    }
    const Member& was = before->second;
    read_or_wrote = read_or_wrote || (was.io && is.io && *is.io > *was.io);
    pages += risen(was.page_faults, is.page_faults);
    ticks += risen(was.cpu_ticks, is.cpu_ticks);
    if (pid != family.worker.pid) children_ticks += risen(was.cpu_ticks, is.cpu_ticks);
    wants_core = wants_core || is.wants_core;
    for (const auto& [tid, thread] : is.threads) {
      const auto known = was.threads.find(tid);
      had_a_turn = had_a_turn || known == was.threads.end() || thread.turns != known->second.turns;
      if (known == was.threads.end()) continue;
      const double ran_s = static_cast<double>(risen(known->second.ran_ns, thread.ran_ns)) / 1e9;
      const double wanted_s = ran_s + static_cast<double>(risen(known->second.queued_ns, thread.queued_ns)) / 1e9;
      const auto turns = static_cast<double>(risen(known->second.turns, thread.turns));
      in_turns = in_turns || (ran_s >= kPollsBelow / 2 * passed_s && wanted_s >= kPollsBelow * passed_s &&
                              wanted_s <= kSpinsAbove * passed_s && ran_s >= kTurn_s * turns);
      if (tid == family.worker.pid)
        looked_around =
            is.sleeps && turns > 0 && turns <= kTurnsOfALook_per_s * passed_s && wanted_s < kPollsBelow * passed_s;
    }
  }
  family.waits_for_good = !had_a_turn && std::none_of(now.begin(), now.end(), [&](const auto& member) {
    return waits_of(proc_root_, member.first).has_limit || read_open_ends(proc_root_, member.first).has_timer;
  });
  family.in_turns += in_turns ? 1 : 0;
  family.new_pages += static_cast<double>(pages) > kPages_per_s * passed_s ? 1 : 0;
  family.children_computed += tick_seconds(children_ticks) > kChildrenCores * passed_s ? 1 : 0;
  family.looked_around += looked_around ? 1 : 0;
  family.starved += wants_core && tick_seconds(ticks) < kStarvedCores * passed_s ? 1 : 0;
  ++family.looks;
  if (!family.sign.empty()) return;
  if (read_or_wrote)
    family.sign = "it, or a process that it started, read or wrote";
  else if (started)
    family.sign = "it started a process";
  else if (family.in_turns >= kLooks)
    family.sign = "it alternated between computing and waiting";
  else if (family.new_pages >= kLooks)
    family.sign = "it used more and more of its memory";
  else if (family.children_computed >= kLooks)
    family.sign = "its children computed";
  else if (family.looked_around >= kLooks)
    family.sign = "it alternated between sleeping and polling";
}

void LifeWatch::look() {
  const double up_s = machine_uptime_s(proc_root_).value_or(0);
  const std::vector<ListedProcess> all = list_processes(proc_root_);
  std::multimap<std::uint32_t, std::uint32_t> children;
  for (const ListedProcess& process : all)
    if (process.state != 'Z') children.emplace(process.parent_pid, process.pid);
  for (Family& family : families_) {
    if (family.has_ended) continue;
    std::map<std::uint32_t, Member> now;
    std::vector<std::uint32_t> members = {family.worker.pid};
    for (std::size_t i = 0; i < members.size(); ++i) {
      now[members[i]] = read_member(members[i]);
      const auto [from, to] = children.equal_range(members[i]);
      for (auto at = from; at != to && members.size() < kMostMembers; ++at)
        if (!alone_.contains(at->second)) members.push_back(at->second);
    }
    if (now[family.worker.pid].start_ticks != family.worker.start_ticks) {
      family.has_ended = true;
      continue;
    }
    if (!family.members.empty()) compare(family, now, up_s - looked_s_);
    family.members = std::move(now);
  }
  looked_s_ = up_s;
}

bool LifeWatch::is_decided() const {
  return std::all_of(families_.begin(), families_.end(), [](const Family& family) {
    return family.has_ended || family.waits_for_good || !family.sign.empty();
  });
}

std::string LifeWatch::sign_of(std::size_t worker) const {
  const Family& family = families_[worker];
  if (family.has_ended) return {};
  if (family.sign.empty() && family.looks > 0 && family.starved == family.looks) return "it got no CPU time";
  return family.sign;
}

}  // namespace vramtrack
