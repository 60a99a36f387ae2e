// The processes of this machine, and those below one process.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace vramtrack {

/// What a walk of /proc shows of one process.
struct ListedProcess {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t group = 0;
  std::uint32_t session = 0;
  std::uint64_t start_ticks = 0;  ///< never 0
  bool is_forked_only = false;    ///< as in ProcessStat
  char state = '?';               ///< 'R', 'S', 'D', 'Z', ...
  std::string name;               ///< comm
};

/// The processes that are visible below `proc_root` now, by pid. Cost: one small file per process, some ms.
std::vector<ListedProcess> list_processes(const std::string& proc_root);

/// Where to look for a program that a caller represents without naming it, the nearest first: the parents of `pid`,
/// each alone, starting with its own; then all others of its session, together. Cost: as list_processes().
std::vector<std::vector<std::uint32_t>> processes_around(const std::string& proc_root, std::uint32_t pid);

/// `root` and all processes below it now, according to /proc; those whose parent has ended are not found. Cost: one
/// small file per process of the machine, some ms.
std::set<std::uint32_t> process_tree(const std::string& proc_root, std::uint32_t root);

}  // namespace vramtrack
