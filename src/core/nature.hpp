// Whether a program may rest, judging by its command: a worker should work until it ends, others may be idle.
// The kind of a program is in core/program_kind.
#pragma once

#include <string_view>

#include "core/progress.hpp"

namespace vramtrack {

struct NatureFound {
  ProcessNature nature = ProcessNature::worker;
  std::string_view what;  ///< "Jupyter kernel"; empty: nothing is known. A literal
};

/// `command`: its arguments joined by spaces; `name`: its comm; `kind`: as ProcessInfo::kind. Pure. A command can be
/// made to look like any of these: use the answer only to spare a process, never to act against it.
NatureFound nature_of(std::string_view command, std::string_view name, std::string_view kind);

/// Whether the command is that of a helper that works only for the program that started it: one of Python's
/// multiprocessing, PyTorch's DataLoader, vLLM or Ray.
bool is_multiprocessing_helper(std::string_view command, std::string_view name);

/// Whether the command is an interpreter without a program, which runs what a person types.
bool is_bare_interpreter(std::string_view command);

}  // namespace vramtrack
