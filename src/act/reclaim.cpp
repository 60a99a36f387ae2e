#include "act/reclaim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "act/proof.hpp"
#include "core/format.hpp"
#include "core/option.hpp"
#include "host/life_watch.hpp"
#include "host/parentage.hpp"
#include "host/process.hpp"
#include "host/process_tree.hpp"

namespace vramtrack::act {
namespace {

constexpr double kLook_s = 0.1;
/// The time between two looks at the watched processes, and how long to watch those that wait for others.
constexpr double kWatchLook_s = 1;
constexpr double kQuietWatch_s = 2;

AuditEntry entry_of(const char* event, const Subject& target, const ReclaimTools& tools, const std::string& climb) {
  AuditEntry e;
  e.event = event;
  e.time = e.written = tools.now();
  e.boot = tools.boot_id;
  e.climb = climb;
  e.policy = "reclaim";
  e.subject = target;
  return e;
}

/// Whether the process ends within `at_most_s`.
bool ends(const ProcessKey& process, const ReclaimTools& tools, double at_most_s) {
  std::string path;
  for (double waited_s = 0;; waited_s += kLook_s) {
    const auto alive = process_alive(tools.act.proc_root, process.pid, path);
    if (!alive || alive->start_ticks != process.start_ticks) return true;
    if (waited_s >= at_most_s) return false;
    tools.sleep(kLook_s);
  }
}

/// Sends one signal and records it before and after.
Status signal(const ActRequest& request, int number, std::size_t step, const ReclaimTools& tools, Journal& journal) {
  AuditEntry e = entry_of("intent", request.subject, tools, request.id);
  e.step = step;
  e.action = number == SIGKILL ? "kill" : "terminate";
  e.text = fmt::format("send {} to {}", number == SIGKILL ? "SIGKILL" : "SIGTERM", subject_words(request.subject));
  if (Status written = journal.append(e, true); !written) return written;
  const auto sent = send_signal(request, number);
  e.event = sent ? "done" : "failed";
  e.text = sent ? *sent : sent.error().message;
  e.time = e.written = tools.now();
  if (Status written = journal.append(e, true); !written) return written;
  return sent ? Status() : fail(sent.error());
}

Result<std::string> climb(const ActRequest& request, const ReclaimTools& tools, Journal& journal) {
  const ProcessKey& process = request.subject.process;
  if (const Status sent = signal(request, SIGTERM, 0, tools, journal); !sent) return fail(sent.error());
  if (ends(process, tools, tools.patience_s)) return "it ended after SIGTERM";
  if (const Status sent = signal(request, SIGKILL, 1, tools, journal); !sent) {
    if (ends(process, tools, 0)) return "it ended after SIGTERM";
    return fail(sent.error());
  }
  if (ends(process, tools, tools.patience_s)) return "it ended after SIGKILL";
  return fail(
      fmt::format("pid {} still exists after SIGKILL: it waits in the kernel; look for XID errors in the kernel log; "
                  "the machine may have to be restarted",
                  process.pid));
}

}  // namespace

std::string why_spared(const Holder& holder, const ReclaimBounds& bounds) {
  const std::uint32_t pid = holder.info.pid;
  if (pid <= 1 || bounds.protected_pids.contains(pid)) return "it is init, or vramtrack was started by it";
  if (holder.state == HolderState::zombie)
    return fmt::format("it has ended already: end its parent, pid {}, or wait for it", holder.parent_pid);
  if (holder.state == HolderState::uninterruptible)
    return "it waits in the kernel, where no signal reaches it: look for XID errors in the kernel log";
  if (holder.state == HolderState::not_visible) return "it is not visible here: run this on the host";
  if (holder.state != HolderState::orphaned) return "it is alive";
  if (!holder.is_worker) return "its parent has ended, but it may have been left to run on purpose";
  if (!holder.kept.empty()) return "its parent has ended, but " + holder.kept;
  const bool is_named = bounds.is_root && bounds.users.contains(holder.info.user);
  if (holder.info.user.empty() || (holder.info.user != bounds.own_user && !is_named))
    return fmt::format("it belongs to {}: as root, name that user with {}",
                       holder.info.user.empty() ? "an unknown user" : holder.info.user, name_of(Option::user));
  return {};
}

std::set<std::uint32_t> self_and_above(const std::string& proc_root, std::uint32_t pid) {
  std::set<std::uint32_t> out;
  const std::vector<ListedProcess> all = list_processes(proc_root);
  while (pid != 0 && out.insert(pid).second) {
    const auto at = std::find_if(all.begin(), all.end(), [pid](const ListedProcess& p) { return p.pid == pid; });
    pid = at == all.end() ? 0 : at->parent_pid;
  }
  return out;
}

std::vector<std::string> signs_of_life(const std::vector<Subject>& targets, const ReclaimTools& tools) {
  std::vector<ProcessKey> workers;
  for (const Subject& target : targets) workers.push_back(target.process);
  LifeWatch watch(tools.act.proc_root, workers);
  watch.look();
  double watched_s = 0;
  while (watched_s < tools.watch_s && (watched_s < kQuietWatch_s || !watch.is_decided())) {
    tools.sleep(kWatchLook_s);
    watched_s += kWatchLook_s;
    watch.look();
  }
  std::map<std::uint32_t, std::string> in_use;
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (const std::string sign = watch.sign_of(i); !sign.empty())
      in_use[targets[i].process.pid] = fmt::format("{} within {}", sign, format_duration(watched_s));
  // Somebody may have started waiting, and a process that works on may wait for others. Checked once for all, because a
  // process whose peer has been ended looks as if it waits for others.
  const LostWorkers lost(tools.act.proc_root, list_processes(tools.act.proc_root), in_use);
  std::vector<std::string> out;
  for (const Subject& target : targets) {
    const auto sign = in_use.find(target.process.pid);
    out.push_back(sign != in_use.end() ? sign->second : lost.of(target.process.pid).kept);
  }
  return out;
}

Result<std::string> reclaim(const Subject& target, const std::string& life, const ReclaimTools& tools,
                            Journal& journal) {
  const StepArguments none;
  const Timestamp began = tools.now();
  const std::string id =
      fmt::format("reclaim-{}-{}-{}", target.process.pid, target.process.start_ticks, began.time_since_epoch().count());
  if (const Status written = journal.append(entry_of("begin", target, tools, id), true); !written)
    return fail(written.error());
  auto result = life.empty() ? climb({target, none, tools.act, "reclaim", id, began}, tools, journal)
                             : Result<std::string>(fail("left alone: " + life));
  AuditEntry end = entry_of("end", target, tools, id);
  end.text = result ? *result : result.error().message;
  if (const Status written = journal.append(end, true); !written) return fail(written.error());
  return result;
}

}  // namespace vramtrack::act
