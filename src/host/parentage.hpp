// Whether the process that started another one has ended, judging by what /proc shows of both: decided only here.
// No process is recognised by its name as one that adopts: any may be, a script as pid 1 of a container, a
// supervisor, a step daemon.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/pipes.hpp"
#include "host/process_tree.hpp"

namespace vramtrack {

/// What /proc shows of a process and of its parent.
struct Parentage {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t group = 0;  ///< 0: led from outside this pid namespace
  std::uint32_t session = 0;
  bool parent_is_visible = false;
  std::uint32_t parent_group = 0;  ///< these two only if the parent is visible
  std::uint32_t parent_session = 0;
  bool leader_lives = false;  ///< whether the leader of its group exists
  /// For a worker of Python's multiprocessing: holds_other_end() for it and its parent.
  std::optional<bool> parent_holds_pipe;
};

/// Pure. A process is known to have lost its starter if its parent is not the one that started it (it is of another
/// session), and the leader of its group, which was its job, has ended. For a worker its pipes decide, if they can
/// be read: a program holds the other ends of those that it gave to its workers.
bool has_lost_its_starter(const Parentage& process);

/// The workers of a machine whose program has ended: processes that work only for the program that started them, and
/// for which nobody waits any more. They are recognised by what they have, not by their names:
///
///     of Python's multiprocessing   the two pipes that each of its workers is born with: it holds one end of each, and
///     (also DataLoader, vLLM)       the program the others; a worker of a forkserver has one. A process that such a
///                                   worker left behind has none that is as old as itself
///     of torchrun                   its job's variables, and a connection to its launcher's store, which has closed
///                                   it; or to another rank, where nobody listens on the store's port any more
///     of Ray                        its title, and a connection to the process that started it
///     (neither)                     if it has started no program since it was forked: a rank's daemon
///
/// They are lost as a set: all whose parent did not start them, except those that somebody outside keeps, until no more
/// are found. Outside is any process that is neither in the set nor was started by one in it. It keeps a worker if it
/// holds the other end of its pipe or connection, or shares its memory; and one that it can find where that listens: at
/// an address that can be known without having been given it, or that it was started with. So those that only listen
/// for each other do not keep each other.
///
/// A worker is not lost, either, if it leads a session of its own without being a rank, or if somebody whose files this
/// user may not read may wait for it. If it is not evident that its parent adopted it, or that its session was its
/// program's, it is spared: a program may have closed its ends, and a daemon has those of whoever forked it.
class LostWorkers {
 public:
  struct Found {
    bool is_worker = false;  ///< whether its parent did not start it
    std::string kept;        ///< why somebody may wait for it, in one clause; empty: it is lost
  };

  /// `all`: list_processes(proc_root). `in_use`: workers that are not lost, with the evidence; they may keep others.
  /// Cost: a look at each process's descriptors, some ms per 1000 of them.
  LostWorkers(const std::string& proc_root, const std::vector<ListedProcess>& all,
              const std::map<std::uint32_t, std::string>& in_use = {});

  [[nodiscard]] Found of(std::uint32_t pid) const;

 private:
  struct Worker {
    std::set<std::uint64_t> born_with;  ///< pipes, by inode
    std::uint16_t port = 0;             ///< the port where its ranks meet
    bool is_of_ray = false;
    std::string kept;  ///< as Found::kept
  };
  struct Moment;

  std::map<std::uint32_t, Worker> workers_;  ///< those whose parent did not start them
};

}  // namespace vramtrack
