// The verbs of `vramtrack fleet` that are in separate files.
#pragma once

#include "cli/commands.hpp"

namespace vramtrack::cli {

extern const CommandInfo fleet_watch_command;

}  // namespace vramtrack::cli
