// The commands of the program that `make run` builds: those marked VRAMTRACK_MAIN_JOB_COMMAND in commands.def.
#include "cli/commands.hpp"

namespace vramtrack::cli {

std::span<const CommandInfo* const> commands() {
  static constexpr const CommandInfo* kCommands[] = {
#define VRAMTRACK_MAIN_JOB_COMMAND(name) &name##_command,
#define VRAMTRACK_COMMAND(name)
#include "cli/commands.def"
#undef VRAMTRACK_COMMAND
  };
  return kCommands;
}

std::span<const std::string_view> commands_left_out() {
  static constexpr std::string_view kNames[] = {
#define VRAMTRACK_MAIN_JOB_COMMAND(name)
#define VRAMTRACK_COMMAND(name) #name,
#include "cli/commands.def"
#undef VRAMTRACK_COMMAND
  };
  return kNames;
}

}  // namespace vramtrack::cli
