// The verbs of `vramtrack fleet` that have files of their own.
#pragma once

#include "cli/commands.hpp"

namespace vramtrack::cli {

extern const CommandInfo fleet_watch_command;

}  // namespace vramtrack::cli
