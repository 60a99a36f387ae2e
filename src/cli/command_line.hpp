// Parses the command line as the commands declare it. Only command_line.cpp depends on the parsing library.
#pragma once

#include <span>
#include <string>

#include "cli/commands.hpp"

namespace vramtrack::cli {

/// Either a command to run, or what to print and how to exit (--help, --version, a usage error).
struct Parsed {
  Runner run;  ///< empty: nothing to run
  int exit_code = 0;
  std::string out;
  std::string error;  ///< without "vramtrack: "
};

/// "help COMMAND" is read as "COMMAND --help", and "FILE" as "analyze FILE" if FILE is not a command.
/// REQUIRES: `argv` is as passed to main(). An unknown command is an error even if --help is given
/// too.
Parsed parse_command_line(std::span<const CommandInfo* const> commands, int argc, const char* const* argv);

/// The body of main(): parses the command line of commands() and runs the command with the standard streams of this
/// process. Returns the exit code.
int run_command_line(int argc, const char* const* argv);

}  // namespace vramtrack::cli
