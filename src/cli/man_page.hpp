// The parts of the man page (docs/man/vramtrack.1) that are written from what the commands declare. A test of
// tests/unit/cli compares them with the file, and rewrites it with VRAMTRACK_UPDATE=1.
#pragma once

#include <span>
#include <string>

#include "cli/commands.hpp"

namespace vramtrack::cli {

/// One line a command, of .SH SYNOPSIS.
std::string man_synopsis(std::span<const DeclaredCommand> commands);
/// One section a command or verb that has options of its own; shared options stand in sections of their own.
std::string man_options(std::span<const DeclaredCommand> commands);

}  // namespace vramtrack::cli
