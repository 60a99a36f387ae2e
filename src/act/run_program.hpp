// run_program: runs a program supplied by the user for one message.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "act/outbox.hpp"

namespace vramtrack::act {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Runs `argv` (argv[0] is looked up in PATH; no shell) in its own process group, with `input` as standard input,
/// `variables` added to the environment, default signal handling, and none of this program's files open. Delivered:
/// exit status 0. Otherwise another attempt is worthwhile; the reason ends with the program's last message on standard
/// error. After timeout_s, or on `stop`, the whole group is killed. A program that trusted_command() rejects is not
/// run. REQUIRES: argv is not empty.
Outcome run_program(const std::vector<std::string>& argv, const std::string& input, const Variables& variables,
                    double timeout_s, const std::atomic<bool>& stop);

/// Runs `argv` likewise, with empty standard input. Returns what it wrote to standard output, at most 64 KiB, if its
/// exit status is 0. Errors name the program and end with its last message on standard error.
Result<std::string> run_for_output(const std::vector<std::string>& argv, double timeout_s,
                                   const std::atomic<bool>& stop);

/// A message's VRAMTRACK_ALERT_EVENT, _ID, _INCIDENT, _SEVERITY, _HOST, _DEVICE, _PID, _HEADLINE and _SIMULATED.
Variables variables_of(const Message& message, const OutboxRules& rules);

}  // namespace vramtrack::act
