// The commands. Each has a file (cmd_NAME.cpp), which declares a CommandInfo, and a line in commands.def.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/config_file.hpp"
#include "cli/console.hpp"
#include "core/settings.hpp"

namespace vramtrack::cli {

/// Runs a command with parsed arguments: prints its result and returns the exit code.
using Runner = std::function<int(Console& console)>;

/// A command, or one of its verbs ("config show").
struct CommandInfo {
  std::string_view name;
  std::string_view help;      ///< one line, without a full stop
  std::string_view examples;  ///< the end of --help: "Examples:", and the meaning of the exit codes
  /// Declares the arguments; the returned runner owns what stores them. nullptr: the command has verbs.
  Runner (*declare)(Arguments& arguments) = nullptr;
  std::span<const CommandInfo* const> verbs = {};
};

#define VRAMTRACK_COMMAND(name) extern const CommandInfo name##_command;
#include "cli/commands.def"
#undef VRAMTRACK_COMMAND

/// The commands of this program, in the order of commands.def: all of them, or those that `make run` builds.
std::span<const CommandInfo* const> commands();

/// The names of the commands that this program lacks because `make run` built it.
std::span<const std::string_view> commands_left_out();

/// A command with its declared arguments, and its verbs.
struct DeclaredCommand {
  const CommandInfo* info = nullptr;
  std::string full_name;  ///< "snapshot leaks"
  Arguments arguments;
  Runner run;  ///< owns the variables that store the arguments; empty: the command has verbs
  std::vector<DeclaredCommand> verbs;
};

/// Declares the arguments of all commands, for the texts generated from them.
std::vector<DeclaredCommand> declared(std::span<const CommandInfo* const> commands, const std::string& above = {});

/// A runner for a command that lasts until somebody ends it. An Interrupt exists while it runs, from before anything is
/// printed or asked: a program that sees the first line may end the command at once, even if a shell that started it in
/// the background had made it ignore SIGINT.
Runner until_interrupted(Runner runner);

/// A runner for a command with a configuration: loads it as `options->config` (a ConfigRequest) requests, then either
/// reports what is wrong with it and returns 2, or calls `run`.
template <class Options>
Runner configured(std::shared_ptr<const Options> options,
                  int (*run)(const Options& options, const LayeredConfig& layers, Console& console)) {
  return [options = std::move(options), run](Console& console) {
    const Result<LayeredConfig> layers = load_config(options->config);
    if (layers) return run(*options, *layers, console);
    console.error(layers.error().message);
    return 2;
  };
}

}  // namespace vramtrack::cli
