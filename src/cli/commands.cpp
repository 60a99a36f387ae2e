#include "cli/commands.hpp"

#include "cli/late_libraries.hpp"
#include "host/interrupt.hpp"

namespace vramtrack::cli {

std::vector<DeclaredCommand> declared(std::span<const CommandInfo* const> commands, const std::string& above) {
  std::vector<DeclaredCommand> all;
  for (const CommandInfo* info : commands) {
    DeclaredCommand& command = all.emplace_back();
    command.info = info;
    command.full_name = above.empty() ? std::string(info->name) : above + ' ' + std::string(info->name);
    if (info->declare != nullptr) command.run = info->declare(command.arguments);
    command.verbs = declared(info->verbs, command.full_name);
  }
  return all;
}

Runner until_interrupted(Runner runner) {
  return [runner = std::move(runner)](Console& console) {
    load_late_libraries();
    const Interrupt interrupt;
    return runner(console);
  };
}

}  // namespace vramtrack::cli
