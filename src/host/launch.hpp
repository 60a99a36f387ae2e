// What a process was started as part of, on a machine where neither a scheduler nor a container says so.
#pragma once

#include <cstdint>
#include <string>

namespace vramtrack {

/// "torchrun pid 4242": what a person, a service manager or a timer started, of which the process is a part: itself or
/// the farthest of its parents below a session (ssh, tmux, a notebook server), an interactive shell, init, and programs
/// of another user. So the ranks and workers of one run share it, and two runs of one user differ. By its short name,
/// since a command line may be secret. Where parents have ended, what is left of them counts: ask once, and keep the
/// answer. Empty: no process `pid` with these start ticks is visible. Cost: a small file and a stat for each parent.
std::string launch_of(const std::string& proc_root, std::uint32_t pid, std::uint64_t start_ticks);

}  // namespace vramtrack
