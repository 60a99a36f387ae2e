// The shells' completions (contrib/completions), generated from the commands' declarations. A test in tests/unit/cli
// compares them with the files; with VRAMTRACK_UPDATE=1 it rewrites the files.
#pragma once

#include <span>
#include <string>

#include "cli/commands.hpp"

namespace vramtrack::cli {

std::string bash_completion(std::span<const DeclaredCommand> commands);
std::string zsh_completion(std::span<const DeclaredCommand> commands);
std::string fish_completion(std::span<const DeclaredCommand> commands);

}  // namespace vramtrack::cli
