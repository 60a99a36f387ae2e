#include "act/reclaim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <vector>

#include "act/proof.hpp"
#include "core/format.hpp"
#include "core/option.hpp"
#include "host/parentage.hpp"
#include "host/process.hpp"
#include "host/process_tree.hpp"
#include "host/progress.hpp"

namespace vramtrack::act {
namespace {

constexpr double kLook_s = 0.1;
/// Looks at a process that waits for a core, until it gets one; and at one that computes, until it writes.
constexpr int kStarvedLooks = 5;
constexpr int kBusyLooks = 15;
/// The part of a core above which it computes.
constexpr double kBusyCores = 0.1;

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

/// Whether it ends within `at_most_s`.
bool ends(const ProcessKey& process, const ReclaimTools& tools, double at_most_s) {
  std::string path;
  for (double waited_s = 0;; waited_s += kLook_s) {
    const auto alive = process_alive(tools.act.proc_root, process.pid, path);
    if (!alive || alive->start_ticks != process.start_ticks) return true;
    if (waited_s >= at_most_s) return false;
    tools.sleep(kLook_s);
  }
}

/// Sends one signal; it is recorded before and after.
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
      fmt::format("pid {} still exists after SIGKILL: it waits in the kernel; look for XID errors in the kernel "
                  "log, a restart of the machine may be necessary",
                  process.pid));
}

/// Why it must be taken for in use, in one clause; empty: nothing shows that it is. That it computes shows nothing, as
/// a worker whose program is gone may spin, but what works may write its log only from time to time.
std::string sign_of_life(const Subject& target, const ReclaimTools& tools) {
  ProcessInfo info;
  info.pid = target.process.pid;
  info.start_ticks = target.process.start_ticks;
  info.command = target.command;
  ProgressReader reader(tools.act.proc_root, "/sys");
  std::vector<ProgressReading> seen;
  const auto watched_s = [&] { return static_cast<double>(seen.size()) * tools.watch_s; };
  reader.read({&info, 1}, Timestamp{}, seen);
  const auto moved = [](const std::optional<std::uint64_t>& from, const std::optional<std::uint64_t>& to) {
    return from && to && *to > *from ? *to - *from : 0;
  };
  bool is_starved = true;
  bool is_quiet_and_busy = false;
  for (int looks = 0; (is_starved && looks < kStarvedLooks) || (is_quiet_and_busy && looks < kBusyLooks); ++looks) {
    tools.sleep(tools.watch_s);
    const std::size_t before = seen.size();
    reader.read({&info, 1}, Timestamp{from_seconds(watched_s())}, seen);
    if (seen.size() <= before || before == 0)
      return {};  // it has ended, or is another one: what comes next finds that out
    const ProcessProgress& was = seen.front().progress;
    const ProcessProgress& is = seen.back().progress;
    // One that got a core and does nothing else spins.
    is_starved = is.state == 'R' && is.cpu_s <= was.cpu_s;
    is_quiet_and_busy = is.cpu_s - was.cpu_s >= kBusyCores * (watched_s() - tools.watch_s) &&
                        moved(was.io_bytes, is.io_bytes) + moved(was.children_io_bytes, is.children_io_bytes) == 0;
  }
  const ProcessProgress& before = seen.front().progress;
  const ProcessProgress& now = seen.back().progress;
  const std::string lately = "in the last " + format_duration(watched_s() - tools.watch_s);
  if (const std::uint64_t bytes = moved(before.io_bytes, now.io_bytes); bytes > 0)
    return fmt::format("it read or wrote {} {}, so something uses it", format_bytes(static_cast<double>(bytes)),
                       lately);
  if (moved(before.children_io_bytes, now.children_io_bytes) > 0)
    return fmt::format("its children read or wrote {}, so something uses it", lately);
  if (is_starved) return fmt::format("it got no core {}, so whether something uses it does not show", lately);
  // Somebody may have come meanwhile.
  return LostWorkers(tools.act.proc_root, list_processes(tools.act.proc_root)).of(info.pid).kept;
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

Result<std::string> reclaim(const Subject& target, const ReclaimTools& tools, Journal& journal) {
  const StepArguments none;
  const Timestamp began = tools.now();
  const std::string id =
      fmt::format("reclaim-{}-{}-{}", target.process.pid, target.process.start_ticks, began.time_since_epoch().count());
  if (const Status written = journal.append(entry_of("begin", target, tools, id), true); !written)
    return fail(written.error());
  const std::string life = sign_of_life(target, tools);
  auto result = life.empty() ? climb({target, none, tools.act, "reclaim", id, began}, tools, journal)
                             : Result<std::string>(fail("left alone: " + life));
  AuditEntry end = entry_of("end", target, tools, id);
  end.text = result ? *result : result.error().message;
  if (const Status written = journal.append(end, true); !written) return fail(written.error());
  return result;
}

}  // namespace vramtrack::act
