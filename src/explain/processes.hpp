// Which of the processes that a message names is the one that failed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/judge.hpp"

namespace vramtrack::explain {

/// Takes the process that failed from `failure.others`, where the text shows which it is, and sets own_pid and its
/// bytes. PyTorch names all processes of a device by their pids on the host, and says "this process" of its own; in a
/// container it does not know that pid, and names itself as any other. Then may_name_itself is set.
void find_own_process(Failure& failure);

/// What is held outside the allocator is held by this process, as far as it is more than usual.
bool is_own_outside(const Failure& failure);

/// Who printed a line, by a logger's words before its message: "rank3", "pid=4711"; empty: they do not tell.
std::string_view speaker_of(std::string_view before);

/// "process 450 (7.69 GiB), process 453 (1.28 GiB) and 5 more": the largest first.
/// "4711 python"
std::string process_name(const OtherProcess& process);
std::string processes_words(std::vector<OtherProcess> processes);

}  // namespace vramtrack::explain
