// Reclaim: ends processes that hold a GPU but that nobody waits for any more. It verifies before each signal and
// records each act.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "act/audit.hpp"
#include "host/holders.hpp"

namespace vramtrack::act {

/// The users whose processes may be ended, and the processes that never may.
struct ReclaimBounds {
  std::string own_user;         ///< the user that this program runs as
  std::set<std::string> users;  ///< other users named by the caller; effective only for root
  bool is_root = false;
  std::set<std::uint32_t> protected_pids;  ///< this program and all its ancestors
};

/// Why `holder` must be spared, in one clause; empty: it may be ended. Only a worker whose program has ended and that
/// nobody waits for (LostWorkers) may be ended: any other process whose parent has ended may have been left running on
/// purpose. Pure.
std::string why_spared(const Holder& holder, const ReclaimBounds& bounds);

/// The process itself and all its ancestors, from /proc.
std::set<std::uint32_t> self_and_above(const std::string& proc_root, std::uint32_t pid);

struct ReclaimTools {
  Tools act;                       ///< for its proc_root
  std::string boot_id;             ///< identifies this boot of the machine
  std::function<Timestamp()> now;  ///< the time of day
  std::function<void(double seconds)> sleep;
  double patience_s = 10;  ///< how long to wait after SIGTERM
  double watch_s = 65;     ///< how long to watch them for signs of life before the first signal
};

/// Watches all `targets` at once (host/life_watch) for watch_s, or for 2 s if by then each waits for others or has a
/// result. That nobody waits for a worker is an inference; a worker that works is in use, even if its program has
/// ended. Then checks again whether anybody waits for them (LostWorkers). Returns, per target, the sign that it is in
/// use, in one clause; empty: none. Blocks for that long. Any thread.
std::vector<std::string> signs_of_life(const std::vector<Subject>& targets, const ReclaimTools& tools);

/// `life`: the result of signs_of_life() for `target`. If it is empty, sends SIGTERM through its pidfd, after comparing
/// its start ticks, and SIGKILL after patience_s. Each signal is written to `journal` and synced before it is sent, and
/// its result afterwards. Returns the outcome; an error states that it still runs, or why no signal was sent. Blocks
/// for up to twice patience_s. Any thread.
Result<std::string> reclaim(const Subject& target, const std::string& life, const ReclaimTools& tools,
                            Journal& journal);

}  // namespace vramtrack::act
