#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/format.hpp"
#include "engine/rest.hpp"
#include "engine/stall_facts.hpp"

namespace vramtrack {
namespace {

// The weights of the kinds of evidence. They are a ranking, not frequencies: no corpus of stalled processes exists to
// measure them on. kStallAlertConfidence is below kQuiet, but above it once something important is unknown.
constexpr double kQuiet = 0.80;           ///< nothing in it moved in the whole window, and all of that is known
constexpr double kCertainState = 0.95;    ///< the kernel reports that it cannot run
constexpr double kPeersWork = 0.12;       ///< its siblings make progress, and they have the same work
constexpr double kOrphan = 0.05;          ///< the process that started it has ended, as for a daemon
constexpr double kOrphanedHelper = 0.15;  ///< it worked for that process alone
constexpr double kNoGpu = -0.25;          ///< whether its kernels ran is unknown
constexpr double kNoIo = -0.10;           ///< its reads and writes are unknown
constexpr double kNoSockets = -0.15;      ///< it could be a server
constexpr double kForeground = -0.20;     ///< somebody may be sitting in front of it
constexpr double kParentWorks = -0.30;    ///< it may wait for its parent's next task
constexpr double kLong = 0.05;            ///< four windows long
constexpr double kStopped = 0.80;         ///< it does not run, because it was stopped
constexpr double kUnread = 0.85;
constexpr double kSpinsBesidePeers = 0.65;
constexpr double kSpinsAlone = 0.50;
constexpr double kCollective = 0.80;
constexpr double kCool = 0.08;
constexpr double kGpuSpinsAlone = 0.45;
constexpr double kLeastStalled = 0.55;  ///< below it, the facts fit both
constexpr double kMost = 0.98;

using enum StallJudgement;

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

bool listens(const ProcessProgress& p) {
  return p.listening && (!p.listening->ports.empty() || p.listening->local > 0);
}

bool rests_by_nature(const ProcessProgress& p) {
  return p.nature != ProcessNature::worker || listens(p);
}

class Judge {
 public:
  Judge(const StallFacts& facts, double window_s) : f_(facts), p_(facts.now), window_s_(window_s) {}

  std::optional<Stall> judge() {
    const double rest_s = std::min({f_.io_quiet_s, f_.children_quiet_s, f_.memory_quiet_s});
    const double quiet_s = std::min({rest_s, f_.cpu_quiet_s, f_.gpu_quiet_s});
    if (quiet_s >= window_s_) return quiet(quiet_s);
    const double spins_gpu_s = std::min(rest_s, f_.spins_gpu_s);
    if (spins_gpu_s >= window_s_ && f_.knows_io) return spins_on_gpu(spins_gpu_s);
    const double spins_s = std::min({rest_s, f_.gpu_quiet_s, f_.spins_cpu_s});
    if (spins_s >= window_s_ && f_.knows_gpu && f_.knows_io) return spins_on_cpu(spins_s);
    return std::nullopt;
  }

 private:
  void because(std::string words) { stall_.evidence.push_back(std::move(words)); }

  std::optional<Stall> conclude(StallJudgement judgement, StallCause cause, double for_s, double confidence) {
    stall_.judgement = judgement;
    stall_.cause = cause;
    stall_.stalled_for_s = for_s;
    stall_.since = f_.time - from_seconds(for_s);
    stall_.confidence = std::clamp(std::round(confidence * 100) / 100, 0.0, kMost);
    stall_.held_bytes = f_.held_bytes;
    stall_.what = !p_.what.empty() ? p_.what : listens(p_) ? "server" : p_.helper ? "multiprocessing worker" : "";
    return stall_;
  }

  // --- nothing moves -----------------------------------------------------------------------------------------------

  std::optional<Stall> quiet(double quiet_s) {
    if (p_.state == 'Z') {
      because(fmt::format("it has ended (zombie), but its parent, pid {}, has not reaped it", p_.parent_pid));
      because("the driver still lists its memory");
      return conclude(stalled, StallCause::exited, quiet_s, kCertainState);
    }
    if (p_.tracer_pid != 0 || p_.state == 't') {
      because(fmt::format("a debugger (pid {}) is attached to it", p_.tracer_pid));
      return conclude(idle, StallCause::stopped, quiet_s, kCertainState);
    }
    if (p_.state == 'D' && f_.in_state_s >= window_s_) {
      because("it sleeps uninterruptibly in the kernel (state D) at each check" + waits_in());
      because("no signal reaches it, not even SIGKILL, until the kernel or the driver answers");
      describe_rest();
      return conclude(stalled, StallCause::uninterruptible, quiet_s, kCertainState);
    }
    if (p_.state == 'T' || p_.frozen) return stopped(quiet_s);
    if (rests_by_nature(p_)) return at_rest(quiet_s);
    return waits(quiet_s);
  }

  std::optional<Stall> stopped(double quiet_s) {
    because(p_.frozen ? "its cgroup is frozen, for example by 'docker pause'"
                      : fmt::format("it was stopped by a signal (state T); 'kill -CONT' resumes it"));
    if (rests_by_nature(p_)) {
      describe_nature();
      return conclude(idle, StallCause::stopped, quiet_s, kStopped);
    }
    // Whoever froze it will thaw it: a container runtime, a scheduler.
    if (p_.frozen || !f_.slurm_job.empty()) {
      if (!f_.slurm_job.empty()) because("Slurm stops the processes of a job that it suspends");
      return conclude(unclear, StallCause::stopped, quiet_s, kSpinsAlone);
    }
    describe_rest();
    return conclude(stalled, StallCause::stopped, quiet_s, kStopped + peers_bonus());
  }

  std::optional<Stall> at_rest(double quiet_s) {
    // Its own requests wait for it, so it is not at rest.
    if (f_.requests_wait_s >= window_s_ && p_.nature != ProcessNature::notebook) {
      because(counted(p_.listening->waiting, "connection waits", "connections wait") +
              " to be accepted or read at each check, and it does neither");
      describe_nature();
      describe_rest();
      return conclude(stalled, StallCause::unread_requests, quiet_s, kUnread);
    }
    describe_nature();
    because("it did nothing, which is usual while there are no requests");
    return conclude(idle, StallCause::unknown, quiet_s, p_.nature != ProcessNature::worker ? 0.95 : 0.85);
  }

  std::optional<Stall> waits(double quiet_s) {
    double confidence = kQuiet + peers_bonus();
    if (p_.helper && p_.orphaned) {
      because("it is a helper of Python's multiprocessing, and the process that it worked for has ended");
      confidence += kOrphanedHelper;
    } else if (p_.orphaned) {
      because("the process that started it has ended");
      confidence += kOrphan;
    }
    describe_rest();
    if (!f_.knows_gpu) {
      because(
          "whether its kernels ran is not known: other processes use its GPU, and the driver does not report whose "
          "kernels run");
      confidence += kNoGpu;
    }
    if (!f_.knows_io) {
      because("its reads and writes cannot be observed: run vramtrack as root or with CAP_SYS_PTRACE");
      confidence += kNoIo;
    }
    if (!p_.listening) {
      because("whether it is a server cannot be determined");
      confidence += kNoSockets;
    }
    if (p_.foreground) {
      because("it is in the foreground of a terminal: somebody may be using it");
      confidence += kForeground;
    }
    if (p_.parent_cpu_s && f_.parent_quiet_s < window_s_) {
      because(fmt::format("its parent, pid {}, is working: it may be waiting for the next task", p_.parent_pid));
      confidence += kParentWorks;
    }
    if (quiet_s >= 4 * window_s_) confidence += kLong;
    const bool enough = confidence >= kLeastStalled;
    return conclude(enough ? stalled : unclear, p_.orphaned ? StallCause::orphaned : StallCause::waits, quiet_s,
                    enough ? confidence : 0.5);
  }

  // --- something spins ---------------------------------------------------------------------------------------------

  std::optional<Stall> spins_on_gpu(double for_s) {
    if (rests_by_nature(p_) || p_.tracer_pid != 0) return std::nullopt;
    because(
        "its GPU is busy, and hardly any memory is read or written there: a kernel spins, as in an NCCL collective");
    if (f_.cool) because("the GPU draws less than half of its power limit");
    because("its memory did not change, and it read and wrote nothing");
    const double cool = f_.cool ? kCool : 0;
    if (f_.peers > 0 && f_.peers_spin == f_.peers) {
      because(fmt::format(
          "{} the same: all ranks are waiting, and which one is the cause cannot be determined from outside",
          counted(f_.peers, "sibling of its job does", "siblings of its job do")));
      return conclude(stalled, StallCause::collective, for_s, kCollective + cool);
    }
    because(
        f_.peers > 0
            ? "not all of its siblings do so: it may be waiting for one of them"
            : "no sibling is seen here: it may be waiting for a rank on another machine, or computing without memory");
    return conclude(unclear, StallCause::collective, for_s, kGpuSpinsAlone + cool);
  }

  std::optional<Stall> spins_on_cpu(double for_s) {
    if (rests_by_nature(p_) || p_.tracer_pid != 0 || !p_.listening) return std::nullopt;
    because(
        fmt::format("it uses {} of a core, and nothing else moves: no kernel ran, its memory did not change, it read "
                    "and wrote nothing",
                    format_percent(f_.cpu_ratio)));
    if (f_.peers_work > 0) {
      because(fmt::format("{} of its {} at work meanwhile", f_.peers_work,
                          counted(f_.peers, "sibling is", "siblings are")));
      return conclude(stalled, StallCause::busy_loop, for_s, kSpinsBesidePeers);
    }
    because("an endless loop and a long computation look the same from outside");
    return conclude(unclear, StallCause::busy_loop, for_s, kSpinsAlone);
  }

  // --- words -------------------------------------------------------------------------------------------------------

  double peers_bonus() {
    if (f_.peers_work == 0) return 0;
    because(fmt::format("{} of its {} busy, and it is not", f_.peers_work,
                        counted(f_.peers, "sibling of the same job is", "siblings of the same job are")));
    return kPeersWork;
  }

  void describe_nature() {
    if (!p_.what.empty()) because("recognised as: " + p_.what);
    if (!listens(p_)) return;
    const ListeningSockets& s = *p_.listening;
    std::string ports;
    for (std::size_t i = 0; i < s.ports.size() && i < 4; ++i)
      ports += fmt::format("{}{}", i == 0 ? "" : ", ", s.ports[i]);
    if (s.ports.size() > 4) ports += ", ...";
    if (!s.ports.empty())
      because(fmt::format("it listens on TCP port {}, {}", ports,
                          s.clients == 0 ? "no client is connected"
                                         : counted(s.clients, "client is connected", "clients are connected")));
    else
      because("it listens on a Unix socket");
  }

  [[nodiscard]] std::string waits_in() const { return p_.waits_in.empty() ? "" : ", in " + p_.waits_in; }

  void describe_rest() {
    std::string words = f_.knows_gpu ? "it ran no kernel" : "it was not seen to run a kernel";
    words += fmt::format(", used {} of a core", format_percent_exact(f_.cpu_ratio));
    if (f_.knows_io) words += ", read and wrote nothing";
    words += ", and its GPU memory did not change";
    because(words);
    if (p_.children > 0) because(counted(p_.children, "child process is idle", "child processes are idle") + ", too");
    if (p_.state != 'D' && !p_.waits_in.empty()) because("its main thread waits in " + p_.waits_in);
  }

  /// "0.02 %": the load of a watchdog thread.
  static std::string format_percent_exact(double ratio) { return fmt::format("{:.2f} %", ratio * 100); }

  const StallFacts& f_;
  const ProcessProgress& p_;
  const double window_s_;
  Stall stall_;
};

}  // namespace

Rest rest_of(const ProcessProgress& p) {
  if (p.held_by_policy) return Rest::none;
  if (p.state == 'Z') return Rest::ended;
  if (rests_by_nature(p) || p.tracer_pid != 0 || p.state == 't' || p.frozen) return Rest::allowed;
  return p.state == 'T' ? Rest::stopped : Rest::none;
}

std::optional<Stall> judge_stall(const StallFacts& facts, double window_s) {
  return Judge(facts, window_s).judge();
}

}  // namespace vramtrack
