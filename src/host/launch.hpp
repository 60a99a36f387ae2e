// The launch that a process belongs to, on a machine where neither a scheduler nor a container shows it.
#pragma once

#include <cstdint>
#include <string>

namespace vramtrack {

/// "torchrun pid 4242": the process started by a person, a service manager or a timer that `pid` belongs to: itself or
/// the farthest of its parents below a session (ssh, tmux, a notebook server), an interactive shell, init, and programs
/// of another user. So the ranks and workers of one run share it, and two runs of one user differ. By its short name,
/// since a command line may be secret. If parents have ended, the remaining ones count: call it once, and keep the
/// result. Empty: no process `pid` with these start ticks is visible. Cost: a small file and a stat per parent.
std::string launch_of(const std::string& proc_root, std::uint32_t pid, std::uint64_t start_ticks);

}  // namespace vramtrack
