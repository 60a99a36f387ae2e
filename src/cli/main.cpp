// vramtrack: parses the command line and runs the command.
#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  return vramtrack::cli::run_command_line(argc, argv);
}
