// --output for a command that prints one document.
#pragma once

#include "cli/commands.hpp"

namespace vramtrack::cli {

/// Declares --output after the other `arguments`. With it, everything that `run` and its child processes print on
/// standard output is written to the file at the end; the file is left unchanged if nothing was printed.
Runner with_output(Arguments& arguments, Runner run);

}  // namespace vramtrack::cli
