// run_program: a program of the user's, told of one message.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "act/outbox.hpp"

namespace vramtrack::act {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Runs `argv` (argv[0] is looked for in PATH; no shell) in a process group of its own, with `input` as standard input,
/// `variables` added to the environment, signals as a new program has them, and none of this program's files open.
/// Delivered: exit status 0. Else another attempt is worth it; the reason ends with the last it said on standard
/// error. After timeout_s, or with `stop`, the whole group is killed. REQUIRES: argv is not empty.
Outcome run_program(const std::vector<std::string>& argv, const std::string& input, const Variables& variables,
                    double timeout_s, const std::atomic<bool>& stop);

/// Runs `argv` likewise, with nothing on its standard input: what it wrote to standard output, at most 64 KiB, where
/// its exit status is 0. Errors name the program and end with the last it said on standard error.
Result<std::string> run_for_output(const std::vector<std::string>& argv, double timeout_s,
                                   const std::atomic<bool>& stop);

/// VRAMTRACK_ALERT_EVENT, _ID, _INCIDENT, _SEVERITY, _HOST, _DEVICE, _PID, _HEADLINE, _SIMULATED of a message.
Variables variables_of(const Message& message, const OutboxRules& rules);

}  // namespace vramtrack::act
