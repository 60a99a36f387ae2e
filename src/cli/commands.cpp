#include "cli/commands.hpp"

namespace vramtrack::cli {

std::span<const CommandInfo* const> commands() {
  static constexpr const CommandInfo* kCommands[] = {
#define VRAMTRACK_COMMAND(name) &name##_command,
#include "cli/commands.def"
#undef VRAMTRACK_COMMAND
  };
  return kCommands;
}

}  // namespace vramtrack::cli
