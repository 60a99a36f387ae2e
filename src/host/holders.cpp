#include "host/holders.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/nature.hpp"
#include "core/order.hpp"
#include "host/parentage.hpp"
#include "host/process.hpp"
#include "host/process_tree.hpp"
#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostDescriptors = 65536;
constexpr std::size_t kMapsBytes = std::size_t{4} << 20U;
constexpr std::uint32_t kKernelThreads = 2;

using Processes = std::vector<ListedProcess>;

const ListedProcess* find(const Processes& all, std::uint32_t pid) {
  const auto at =
      std::lower_bound(all.begin(), all.end(), pid, [](const ListedProcess& p, std::uint32_t n) { return p.pid < n; });
  return at != all.end() && at->pid == pid ? &*at : nullptr;
}

/// Collects the device files among the open ones. False if this user may not look.
bool read_open_files(const std::string& folder, std::set<std::string>& into) {
  DIR* const open = ::opendir((folder + "/fd").c_str());
  if (open == nullptr) return errno != EACCES && errno != EPERM;
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(open)) {
    if (entry->d_name[0] == '.' || ++seen > kMostDescriptors) continue;
    if (std::string target = link_target(folder + "/fd/" + entry->d_name); is_gpu_file(target))
      into.insert(std::move(target));
  }
  ::closedir(open);
  return true;
}

/// A mapping outlives the descriptor that it was made with.
void read_mappings(const std::string& folder, std::set<std::string>& into) {
  const auto text = read_text_file(folder + "/maps", kMapsBytes);
  if (!text) return;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    const std::string_view path = line.substr(std::min(line.find('/'), line.size()));
    if (is_gpu_file(path)) into.emplace(path);
  }
}

std::string parent_words(const ListedProcess* parent, std::uint32_t pid) {
  return parent != nullptr ? fmt::format("pid {} ({})", pid, parent->name) : fmt::format("pid {}", pid);
}

bool is_orphaned(const Processes& all, const ListedProcess& process) {
  Parentage known;
  known.pid = process.pid;
  known.parent_pid = process.parent_pid;
  known.group = process.group;
  known.session = process.session;
  known.leader_lives = find(all, process.group) != nullptr;
  if (const ListedProcess* parent = find(all, process.parent_pid); parent != nullptr) {
    known.parent_is_visible = true;
    known.parent_group = parent->group;
    known.parent_session = parent->session;
  }
  return has_lost_its_starter(known);
}

void judge(const Processes& all, const LostWorkers& lost, const ListedProcess& process, Holder& holder) {
  const ListedProcess* parent = find(all, process.parent_pid);
  const std::string above = parent_words(parent, process.parent_pid);
  const NatureFound nature = nature_of(holder.info.command, holder.info.name, holder.info.kind);
  const LostWorkers::Found worker = lost.of(process.pid);
  if (process.state == 'Z' || process.state == 'X') {
    holder.state = HolderState::zombie;
    holder.why = fmt::format("it has ended, but its parent {} has not reaped it", above);
  } else if (process.state == 'D') {
    holder.state = HolderState::uninterruptible;
    holder.why = "it waits in the kernel, where no signal reaches it";
  } else if (nature.nature == ProcessNature::display || nature.nature == ProcessNature::driver_service) {
    holder.state = HolderState::service;
    holder.why = nature.what;
  } else if (worker.is_worker || is_orphaned(all, process)) {
    holder.state = HolderState::orphaned;
    holder.is_worker = worker.is_worker;
    holder.kept = worker.kept;
    holder.why = fmt::format("the process that started it has ended; its parent is now {}{}{}", above,
                             worker.kept.empty() ? "" : ", but ", worker.kept);
  } else {
    holder.why = nature.what.empty() ? fmt::format("it runs; its parent is {}", above) : std::string(nature.what);
  }
  if (holder.info.ns_pid != 0) holder.why += fmt::format("; pid {} in its own pid namespace", holder.info.ns_pid);
}

Holder not_visible(std::uint32_t pid) {
  Holder holder;
  holder.info.pid = pid;
  holder.state = HolderState::not_visible;
  holder.why = "the driver lists it, but it is not visible here: it has ended, or it is in another pid namespace";
  holder.was_inspected = false;
  return holder;
}

}  // namespace

std::string_view to_string(HolderState state) {
  return kHolderStateNames[static_cast<std::size_t>(state)];
}

bool is_gpu_file(std::string_view path) {
  return path.starts_with("/dev/nvidia") || path.starts_with("/dev/dri/") || path == "/dev/kfd";
}

HoldersFound find_holders(const std::string& proc_root, const std::set<std::uint32_t>& listed) {
  HoldersFound found;
  const Processes all = list_processes(proc_root);
  const LostWorkers lost(proc_root, all);
  const auto now_s = machine_uptime_s(proc_root);
  for (const ListedProcess& process : all) {
    if (process.pid == kKernelThreads || process.parent_pid == kKernelThreads) continue;
    const std::string folder = proc_root + '/' + std::to_string(process.pid);
    Holder holder;
    holder.was_inspected = read_open_files(folder, holder.files);
    if (!holder.was_inspected) ++found.not_inspected;
    read_mappings(folder, holder.files);
    if (holder.files.empty() && !listed.contains(process.pid)) continue;
    auto info = read_process(proc_root, process.pid);
    if (!info || info->start_ticks != process.start_ticks) continue;  // it has ended since
    holder.info = std::move(*info);
    holder.parent_pid = process.parent_pid;
    if (now_s) holder.age_s = process_age_s(*now_s, process.start_ticks);
    judge(all, lost, process, holder);
    found.holders.push_back(std::move(holder));
  }
  for (const std::uint32_t pid : listed)
    if (find(all, pid) == nullptr) found.holders.push_back(not_visible(pid));
  order(found.holders, [](const Holder& a, const Holder& b) { return a.info.pid < b.info.pid; });
  return found;
}

}  // namespace vramtrack
