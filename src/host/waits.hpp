// How the threads of a process wait: for how long, and for what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrack {

/// The system call in which a thread waits.
struct Wait {
  bool has_limit = true;         ///< it may continue by itself after a while; if this is false, others must wake it
  bool is_for_any_file = false;  ///< in select, poll or epoll: any file that it has open may wake it
};

/// From the text of /proc/PID/task/TID/syscall; nullopt if it runs, or waits in no call. Pure.
std::optional<Wait> parse_wait(std::string_view syscall);

/// The name of the driver's own thread, which wakes ten times per second as long as a process uses CUDA.
inline constexpr std::string_view kThreadOfDriver = "cuda-EvtHandlr";

/// The waits of all threads of a process together: each of the two holds if it does for one of them, and both if this
/// user may not look, which takes the permission to trace. A thread that runs has a limit; the driver's own does not
/// count. Cost: two small files per thread.
Wait waits_of(const std::string& proc_root, std::uint32_t pid);

}  // namespace vramtrack
