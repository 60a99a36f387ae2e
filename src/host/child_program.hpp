// A program that is run with this one's standard streams, and its end.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// How a program ended: one of the two, or neither if that is unknown.
struct ProgramEnd {
  std::optional<int> exit_code;
  int signal = 0;  ///< the signal that killed it; 0: none
};

/// What a shell would return: the exit code, or 128 + the signal.
int shell_status(const ProgramEnd& end);

/// One variable of the program's environment; without a value, it is removed.
struct Variable {
  std::string name;
  std::optional<std::string> value;
};

/// Starts `program`, looked up in PATH, with this environment and the `changes` to it, SIGPIPE as a program expects it
/// (other signals that are ignored here are ignored there), and the descriptor `inherited` (-1: none) under its own
/// number. An Error if it could not be started, with what to do.
Result<pid_t> start_program(const std::vector<std::string>& program, const std::vector<Variable>& changes,
                            int inherited = -1);

/// nullopt if `pid`, a child, is still running.
std::optional<ProgramEnd> ended_program(pid_t pid);

/// Blocks until `pid`, a child, has ended.
ProgramEnd wait_for_program(pid_t pid);

}  // namespace vramtrack
