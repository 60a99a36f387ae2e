// vramtrack: parse the command line, read the configuration, run the command.
#include "cli/commands.hpp"
#include "cli/config_file.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::cli;

int run(const Options& options, Console& console) {
  switch (options.command) {
    case Command::doctor:
      return doctor(options, console);
    case Command::snapshot:  // reads files only: no setting concerns it
      return snapshot(options, console);
    case Command::config_path:
      return config_path_command(options, console);
    case Command::config_init:
      return config_init(options, console);
    default:
      break;
  }
  const Result<LayeredConfig> layers = load_config(options);
  if (!layers) {
    console.error(layers.error().message);
    return 2;
  }
  switch (options.command) {
    case Command::watch:
      return watch(options, *layers, console);
    case Command::agent:
#ifdef VRAMTRACK_AGENT
      return agent(options, *layers, console);
#else
      console.error(
          "this build has no agent: its libraries cannot be linked statically; install the .deb, or build with 'make'");
      return 2;
#endif
    case Command::top:
      return top(options, *layers, console);
    case Command::replay:
      return replay(options, *layers, console);
    case Command::analyze:
      return analyze(options, *layers, console);
    case Command::report:
      return report(options, *layers, console);
    case Command::simulate:
      return simulate(options, *layers, console);
    case Command::test:
      return test(options, *layers, console);
    default:
      return config_show(options, *layers, console);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Console console;
  const Parsed parsed = parse_options(argc, argv);
  console.write(parsed.out);
  if (!parsed.error.empty()) console.error(parsed.error);
  if (!parsed.options) return parsed.exit_code;
  for (const std::string& ignored : ignored_variables()) console.warn(ignored);
  const int exit_code = run(*parsed.options, console);
  return console.failed() ? 2 : exit_code;
}
