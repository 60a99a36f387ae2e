// Reclaim: ends processes that hold a GPU but that nobody waits for any more, with verification before each signal and
// a record of each act.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "act/audit.hpp"
#include "host/holders.hpp"

namespace vramtrack::act {

/// Whose processes may be ended, and which processes never.
struct ReclaimBounds {
  std::string own_user;         ///< the user that this program runs as
  std::set<std::string> users;  ///< other users that were named; effective only for root
  bool is_root = false;
  std::set<std::uint32_t> protected_pids;  ///< this program and all its ancestors
};

/// Why `holder` is left alone, in one clause; empty: it may be ended. Only a worker whose program has ended and for
/// which nobody waits (LostWorkers) may be: any other process whose parent has ended may have been left running on
/// purpose. Pure.
std::string why_spared(const Holder& holder, const ReclaimBounds& bounds);

/// The process itself and all its ancestors, by /proc.
std::set<std::uint32_t> self_and_above(const std::string& proc_root, std::uint32_t pid);

struct ReclaimTools {
  Tools act;                       ///< its proc_root
  std::string boot_id;             ///< identifies this boot of the machine
  std::function<Timestamp()> now;  ///< the time of day
  std::function<void(double seconds)> sleep;
  double patience_s = 10;  ///< how long SIGTERM may take
  double watch_s = 65;     ///< how long they are watched for signs of life before the first signal
};

/// Watches all `targets` at once (host/life_watch), for watch_s, or for 2 s if all of them wait for others or are
/// decided by then: that nobody waits for a worker is an inference, and one that works is in use whatever became of its
/// program. Then asks again whether somebody waits for them (LostWorkers). Of each what shows that it is in use, in one
/// clause; empty: nothing does. Blocks that long. Any thread.
std::vector<std::string> signs_of_life(const std::vector<Subject>& targets, const ReclaimTools& tools);

/// `life`: what signs_of_life() found of `target`. Without a sign sends SIGTERM through its pidfd, after comparing its
/// start ticks; after patience_s sends SIGKILL. Each signal is written to `journal` and synced before it is sent, and
/// its result afterwards. Returns the outcome; an error says that it still runs, or why nothing was sent. Blocks for up
/// to twice patience_s. Any thread.
Result<std::string> reclaim(const Subject& target, const std::string& life, const ReclaimTools& tools,
                            Journal& journal);

}  // namespace vramtrack::act
