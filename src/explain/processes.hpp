// Determines which of the processes in a message is the one that failed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/explanation.hpp"

namespace vramtrack::explain {

/// Removes the process that failed from `failure.others`, if the text identifies it, and sets own_pid and its bytes.
/// PyTorch lists all processes of a device by their pids on the host, and calls itself "this process"; in a container
/// it does not know that pid, and lists itself like any other. Then may_name_itself is set, unless the text gives
/// names, none of which is the program's own.
void find_own_process(Failure& failure);

/// Memory held outside the allocator belongs to this process, as far as it exceeds the usual amount.
bool is_own_outside(const Failure& failure);

/// The process that printed a line, from a logger's words before its message: "rank3", "pid=4711"; empty: unknown.
std::string_view speaker_of(std::string_view before);

/// "4711 python"
std::string process_name(const OtherProcess& process);
/// "process 450 (7.69 GiB), process 453 (1.28 GiB) and 5 more": the largest first.
std::string processes_words(const std::vector<OtherProcess>& processes);
/// "other processes: pid 450 (7.69 GiB), pid 453 (1.28 GiB) and 5 more", with `between` after the noun; "another
/// process" for one.
std::string other_processes_words(const std::vector<OtherProcess>& processes, std::string_view between = {});

}  // namespace vramtrack::explain
