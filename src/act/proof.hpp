// Proof: that the process which an act is about is still the one that the evidence was of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "act/action.hpp"
#include "host/held_process.hpp"

namespace vramtrack::act {

/// Holds the subject's process by its pidfd, its start ticks compared. Errors: it has ended, its pid is another
/// process's, it is on another machine, it is this program or init, or there is no process.
Result<HeldProcess> hold(const ActRequest& request);

/// That its work may be acted on through the scheduler that owns it: by hold() on this machine, by Tools::prove on
/// another. The process as it is now.
Result<ProcessInfo> prove(const ActRequest& request);

/// Sends `signal` to that process: "SIGTERM was sent". Errors: hold()'s; not permitted, with what to do.
Result<std::string> send_signal(const ActRequest& request, int signal);

/// `words` with {pid}, {user}, {device}, {gpu}, {job}, {container}, {pod}, {node} and {policy} replaced in each.
std::vector<std::string> filled_in(const std::vector<std::string>& words, const ActRequest& request);

/// "save.sh --now 4242", printable: what will be run, as people read it.
std::string program_words(const std::vector<std::string>& argv);

}  // namespace vramtrack::act
