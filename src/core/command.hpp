// The commands that sentences advise to run. A program that `make run` built has some of them; a sentence names how to
// get the others.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vramtrack {

/// "'vramtrack doctor'", for `line` = "vramtrack doctor"; "'vramtrack doctor' ('make build' adds it)" in a program
/// without this command. `line` may begin with "sudo". Thread-safe.
std::string command_hint(std::string_view line);

/// The commands that this program lacks: the code that starts the process calls it once, before any sentence is made.
/// `names` must live as long as the process. Otherwise it lacks none.
void set_commands_left_out(std::span<const std::string_view> names);

}  // namespace vramtrack
