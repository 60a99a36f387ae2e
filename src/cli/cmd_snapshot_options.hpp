// The options of `vramtrack snapshot`, apart from the others for their length. For options.cpp only: CLI11 compiles
// slowly.
#pragma once

#include "cli/options.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace vramtrack::cli {

/// Adds the command and its verbs; whichever is parsed sets o.snapshot.verb. The caller sets o.command.
CLI::App* add_snapshot(CLI::App& app, Options& o);

}  // namespace vramtrack::cli
