// Which framework a process runs, judging by what is visible from outside, and what usually leaks in it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/program_kind.hpp"

namespace vramtrack {

/// The framework of a process, or "" if nothing visible indicates one. The most specific wins: a vLLM server also maps
/// PyTorch's libraries, but is "vLLM". The result is a name from framework.def, valid forever. Pure.
/// `command`: the command line, arguments joined by spaces, or only a path, as in logs.
/// `name`: the short name (comm). Either may be empty.
/// `mapped_library_names`: names of mapped files without their folders ("libc10.so"), and "package/" for
/// a loaded extension module of a Python package. Anything that a program only mentions in its arguments
/// (a data set's path, a flag) is not evidence.
/// Cost: frameworks x names; microseconds. Call it when something about the process has changed, not at every poll.
std::string_view recognise_framework(std::string_view command, std::string_view name,
                                     std::span<const std::string> mapped_library_names);

/// Whether programs that use `framework` serve requests or infer, and so have no checkpoint to save.
bool is_for_inference(std::string_view framework);

/// The usual causes of a leak under `framework`, for a program of that kind: causes that only training has are not
/// given for a server. For an empty or unknown name, those that hold for any GPU program. Never empty.
std::vector<std::string> framework_causes(std::string_view framework, ProgramKind kind = ProgramKind::unknown);
/// What to try next, chosen in the same way.
std::vector<std::string> framework_advice(std::string_view framework, ProgramKind kind = ProgramKind::unknown);

}  // namespace vramtrack
