// Reclaim: ends processes that hold a GPU and that nobody waits for any more, with proof before each signal and a
// record of each act.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "act/audit.hpp"
#include "host/holders.hpp"

namespace vramtrack::act {

/// Whose processes may be ended, and which never.
struct ReclaimBounds {
  std::string own_user;         ///< whom this program runs as
  std::set<std::string> users;  ///< others that were named; only root's word counts
  bool is_root = false;
  std::set<std::uint32_t> protected_pids;  ///< this program and all above it
};

/// Why `holder` is left alone, in one clause; empty: it may be ended. Only a worker that Python's multiprocessing or a
/// DataLoader started, and whose parent has ended, may: any other process whose parent has ended may have been left to
/// run on purpose. Pure.
std::string why_spared(const Holder& holder, const ReclaimBounds& bounds);

/// The process itself and all above it, by /proc.
std::set<std::uint32_t> self_and_above(const std::string& proc_root, std::uint32_t pid);

struct ReclaimTools {
  Tools act;                       ///< its proc_root
  std::string boot_id;             ///< of this start of the machine
  std::function<Timestamp()> now;  ///< the time of day
  std::function<void(double seconds)> sleep;
  double patience_s = 10;  ///< how long SIGTERM may take
};

/// Sends SIGTERM to `target` through its pidfd, its start ticks compared; after patience_s SIGKILL. Each signal is
/// written to `journal` and synced before it is sent, and its result afterwards. Returns what became of the process: an
/// error says that it still runs, or why nothing was sent. Blocks for up to twice patience_s. Any thread.
Result<std::string> reclaim(const Subject& target, const ReclaimTools& tools, Journal& journal);

}  // namespace vramtrack::act
