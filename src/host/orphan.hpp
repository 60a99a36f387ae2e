// Whether the process that started another one has ended: the one place that decides it.
#pragma once

#include <cstdint>
#include <string>

namespace vramtrack {

/// What /proc shows of a process and of its parent.
struct Parentage {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t group = 0;  ///< 0: led from outside this pid namespace
  std::uint32_t session = 0;
  bool is_helper = false;  ///< is_multiprocessing_helper()
  bool parent_is_visible = false;
  std::uint32_t parent_group = 0;  ///< these three only if it is visible
  std::uint32_t parent_session = 0;
  std::string parent_name;    ///< its comm; needed for a helper only
  bool leader_lives = false;  ///< the leader of its group is there
};

/// A helper is started by the program that it works for, never by what adopts processes (init, a container's init, a
/// job's step daemon) or by a shell: with such a parent it is an orphan, although a batch script or a retry loop still
/// leads its group. Of any other process that is known only where its parent is another one than started it, and the
/// leader of its group, which was its job, has ended. Pure.
bool has_lost_its_starter(const Parentage& process);

}  // namespace vramtrack
