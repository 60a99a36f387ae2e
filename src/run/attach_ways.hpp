// Ways to have a Python program that runs already open the door for `vramtrack attach`: by its own interpreter (3.14
// and newer), by the probe of `vramtrack run`, or by a debugger, where the user asks for that.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "run/attach.hpp"

namespace vramtrack::run {

/// The socket of the door that is open; empty: there is none.
std::string find_door(std::uint32_t pid);

/// Opens it; the path of its socket. Waits for the program for some seconds. `with_debugger`: also by gdb, which stops
/// the program meanwhile. Errors say why not, and what to do at the next start.
Result<std::string> have_door_opened(const AttachTarget& target, bool with_debugger);

}  // namespace vramtrack::run
