// Proof: verifies that the process to act on is still the one that the evidence is about.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "act/action.hpp"
#include "host/held_process.hpp"

namespace vramtrack::act {

/// Holds the subject's process by its pidfd, after comparing its start ticks. Errors: it has ended, its pid belongs to
/// another process, it is on another machine, it is this program or init, or there is no process.
Result<HeldProcess> hold(const ActRequest& request);

/// Verifies that the scheduler that owns its work may be asked to act on it: with hold() on this machine, with
/// Tools::prove on another. Returns the process in its current state.
Result<ProcessInfo> prove(const ActRequest& request);

/// Sends `signal` to that process; returns "SIGTERM was sent". Errors: those of hold(); not permitted, with a remedy.
Result<std::string> send_signal(const ActRequest& request, int signal);

/// The plan of `action`, by ActionInfo::plan.
Result<ActPlan> plan_of(const ActionInfo& action, const ActRequest& request);

/// `words` with {pid}, {user}, {device}, {gpu}, {job}, {container}, {pod}, {namespace}, {pod-name}, {node} and {policy}
/// replaced in each. The names of the pod come from the API server, which is asked only if they are used: the labels of
/// an alert prove nothing. Errors: those of pod_of().
Result<std::vector<std::string>> filled_in(const std::vector<std::string>& words, const ActRequest& request);

/// For actions that run a program.
inline constexpr Parameter kProgramTimeout{"timeout", ParameterKind::duration, false,
                                           "The program is ended after this long; default act.timeout-seconds"};

/// The plan for the program in the step's parameter `program`. Errors: those of filled_in().
Result<ActPlan> program_plan(const ActRequest& request);

/// Runs that program for at most the step's `timeout`. Errors: those of filled_in(); the program failed.
Result<std::string> run_program_of(const ActRequest& request);

/// The command line for people to read: "save.sh --now 4242". Printable.
std::string program_words(const std::vector<std::string>& argv);

}  // namespace vramtrack::act
