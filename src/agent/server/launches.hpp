// Launches: what processes were started as part of, as it was when it was first asked for.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/view.hpp"

namespace vramtrack::agent {

/// A launcher may end before its workers, and a process before its alert: an alert keeps its labels through both. May
/// be called from any thread.
class Launches {
 public:
  explicit Launches(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  /// launch_of() of a process of this machine; empty: it was never visible. Cost the first time: that of launch_of().
  std::string find(const ProcessKey& process);
  /// Forgets the processes that are not in `view`. O(series).
  void keep(const View& view);

 private:
  const std::string proc_root_;
  std::mutex mutex_;  ///< guards all below
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> known_;
};

}  // namespace vramtrack::agent
