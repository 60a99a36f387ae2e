// Which framework a process runs, judging from what is visible from outside, and what usually leaks in it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/program_kind.hpp"

namespace vramtrack {

/// The framework of a process, or "" if nothing visible indicates one. The most specific wins: a vLLM server maps
/// PyTorch's libraries too and is "vLLM". A name of framework.def, valid for ever. Pure.
/// `command`: the command line, arguments joined by spaces, or only a path, as in logs.
/// `name`: the short name (comm). Either may be empty.
/// `mapped_library_names`: names of mapped files without their folder ("libc10.so"), and "package/" for
/// a loaded extension module of a Python package. What a program merely mentions in its arguments
/// (a data set's path, a flag) is not evidence.
/// Cost: frameworks x names; microseconds. Call it when something about the process has changed, not at every poll.
std::string_view recognise_framework(std::string_view command, std::string_view name,
                                     std::span<const std::string> mapped_library_names);

/// Whether programs under `framework` answer requests or infer, and so have no checkpoint to save.
bool is_for_inference(std::string_view framework);

/// The usual causes of a leak under `framework`, in a program of that kind: a server gets none that only training has.
/// An empty or unknown name gets those that hold for any GPU program; never empty.
std::vector<std::string> framework_causes(std::string_view framework, ProgramKind kind = ProgramKind::unknown);
/// What to try next, likewise.
std::vector<std::string> framework_advice(std::string_view framework, ProgramKind kind = ProgramKind::unknown);

}  // namespace vramtrack
