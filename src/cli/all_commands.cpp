// All commands of commands.def; `make run` builds main_job/commands.cpp instead.
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

std::span<const std::string_view> commands_left_out() {
  return {};
}

}  // namespace vramtrack::cli
