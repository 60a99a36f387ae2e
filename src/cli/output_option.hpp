// --output of a command that prints one document.
#pragma once

#include "cli/commands.hpp"

namespace vramtrack::cli {

/// Declares --output, behind what `arguments` have. With it, all that `run` prints on standard output, its child
/// processes too, is written to the file at its end; the file is left as it was if `run` printed nothing.
Runner with_output(Arguments& arguments, Runner run);

}  // namespace vramtrack::cli
