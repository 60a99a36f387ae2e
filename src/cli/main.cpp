// vramtrack: parse the command line, run the command.
#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  using namespace vramtrack::cli;
  Console console;
  const Parsed parsed = parse_command_line(commands(), argc, argv);
  console.write(parsed.out);
  if (!parsed.error.empty()) console.error(parsed.error);
  if (!parsed.run) return parsed.exit_code;
  for (const std::string& ignored : ignored_variables()) console.warn(ignored);
  const int exit_code = parsed.run(console);
  return console.failed() ? 2 : exit_code;
}
