// The parts of the man page (docs/man/vramtrack.1) that are generated from the commands' declarations. A test in
// tests/unit/cli compares them with the file; with VRAMTRACK_UPDATE=1 it rewrites the file.
#pragma once

#include <span>
#include <string>

#include "cli/commands.hpp"

namespace vramtrack::cli {

/// .SH SYNOPSIS, one line per command.
std::string man_synopsis(std::span<const DeclaredCommand> commands);
/// .SH COMMANDS: what each command and each verb does.
std::string man_commands(std::span<const DeclaredCommand> commands);
/// One section per command or verb with options of its own; shared options have separate sections.
std::string man_options(std::span<const DeclaredCommand> commands);

}  // namespace vramtrack::cli
