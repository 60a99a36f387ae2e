// LifeWatch: whether workers continue after their program has ended, by the kernel's counters for each. It knows
// no program by name: anything a process does beyond waiting in vain is a sign of life.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/series.hpp"

namespace vramtrack {

/// One per watch. Not thread-safe.
///
/// A worker and what it started are one family; another worker that is watched, or is itself lost, is not in it.
/// A process that waits in vain sleeps, waking for a moment now and then, or spins, as a rank does if its collective
/// never ends, with its watchdog beside it. So none of these is a sign of life: that it computes all the time,
/// that it wakes often, that the GPU is busy (a collective spins there, too, at 100 % of each multiprocessor it has).
/// These are, at once or, if they may happen by chance (*), when they are seen at three looks:
///
///     it reads or writes            by calls, or to a disk; or only tries to
///     it starts a process
///     a thread computes in turns *  10 to 90 % of the time, 0.2 ms or more at once: it computes, waits for a result,
///                                   and continues. A poller computes for less at once, a spinner never stops
///     it touches new memory *       more than 10 pages per second
///     its children compute *        more than 10 % of a core
///     it looks around *             its main thread sleeps, and wakes at most some times per second: a process that
///                                   waits for others does so in other calls, and one that polls wakes more often
///
/// Cost of a look: one small file per process of the machine, some per member of a family and two or three per
/// thread of each member.
class LifeWatch {
 public:
  LifeWatch(std::string proc_root, std::span<const ProcessKey> workers);

  /// To be called every second or so.
  void look();

  /// Whether more looks cannot show anything new: for each, the end or a sign of life was seen, or it waits without a
  /// limit, so that only others can wake it.
  [[nodiscard]] bool is_decided() const;

  /// What shows that the worker is in use, in one clause that ends before its time: "it read or wrote". Empty: nothing.
  [[nodiscard]] std::string sign_of(std::size_t worker) const;

 private:
  struct Thread {
    std::uint64_t ran_ns = 0;
    std::uint64_t queued_ns = 0;  ///< it had work, but no core
    std::uint64_t turns = 0;      ///< how often it got one
  };
  struct Member {
    std::uint64_t start_ticks = 0;
    std::uint64_t cpu_ticks = 0;
    std::uint64_t page_faults = 0;
    std::optional<std::uint64_t> io;  ///< calls and bytes
    std::map<std::uint32_t, Thread> threads;
    bool wants_core = false;
    bool sleeps = false;  ///< its main thread, for some time
  };
  struct Family {
    ProcessKey worker;
    std::map<std::uint32_t, Member> members;  ///< at the last look
    bool has_ended = false;
    bool waits_for_good = false;
    int looks = 0;
    int starved = 0;  ///< of these, when it had work but hardly got a core
    int in_turns = 0, new_pages = 0, children_computed = 0, looked_around = 0;  ///< likewise
    std::string sign;
  };
  Member read_member(std::uint32_t pid) const;
  void compare(Family& family, const std::map<std::uint32_t, Member>& now, double passed_s) const;

  std::string proc_root_;
  std::vector<Family> families_;
  std::set<std::uint32_t> alone_;  ///< the workers, and others that are lost
  double looked_s_ = 0;            ///< the machine's uptime at the last look
};

}  // namespace vramtrack
