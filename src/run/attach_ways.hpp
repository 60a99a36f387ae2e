// Ways to make a running Python program open the socket for `vramtrack attach`: by its own interpreter (3.14 and
// newer), by the probe of `vramtrack run`, or by a debugger if the user requests that.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "run/attach.hpp"

namespace vramtrack::run {

/// The path of the open attach socket; empty: none.
std::string find_attach_socket(std::uint32_t pid);

/// Opens the attach socket and returns its path. Waits for the program for some seconds. `with_debugger`: may also use
/// gdb, which stops the program meanwhile. Errors explain why it failed, and what to do at the next start.
Result<std::string> open_attach_socket(const AttachTarget& target, bool with_debugger);

}  // namespace vramtrack::run
