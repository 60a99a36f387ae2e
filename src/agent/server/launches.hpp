// Launches: the job or service that each process was started as part of, as of its first lookup.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/view.hpp"

namespace vramtrack::agent {

/// A launcher may end before its workers, and a process before its alert; the alert keeps its labels in both cases. May
/// be called from any thread.
class Launches {
 public:
  explicit Launches(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  /// launch_of() for this machine's process; empty if it was never visible. The first call costs what launch_of() does.
  std::string find(const ProcessKey& process);
  /// Forgets the processes that are not in `view`. O(series).
  void keep(const View& view);

 private:
  const std::string proc_root_;
  std::mutex mutex_;  ///< guards the members below
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> known_;
};

}  // namespace vramtrack::agent
