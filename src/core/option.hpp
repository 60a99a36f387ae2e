// The options that sentences name. A sentence that advises passing an option names an Option, and the surface that
// shows it decides how it is spelled: "pass --capacity" on the command line is "pass capacity_bytes" in Python. Only
// src/cli writes the names of options itself; cli_test checks the sentences of all other modules.
//
// A whole command to run ('vramtrack watch --interval 1s') is the same on every surface and is written out.
#pragma once

#include <cstdint>
#include <string_view>

namespace vramtrack {

/// One enumerator per line of option.def.
enum class Option : std::uint8_t {
#define VRAMTRACK_OPTION(option, name, example, python_name, python_example) option,
#define VRAMTRACK_COMMAND_OPTION(option, name) option,
#include "core/option.def"
#undef VRAMTRACK_COMMAND_OPTION
#undef VRAMTRACK_OPTION
};

constexpr Option kEveryOption[] = {
#define VRAMTRACK_OPTION(option, name, example, python_name, python_example) Option::option,
#define VRAMTRACK_COMMAND_OPTION(option, name) Option::option,
#include "core/option.def"
#undef VRAMTRACK_COMMAND_OPTION
#undef VRAMTRACK_OPTION
};

/// Whose option names sentences use. The agent, its page and its API are started by the command line and use its names.
enum class Surface : std::uint8_t { command_line, python };

/// "--capacity", or "capacity_bytes". Thread-safe.
std::string_view name_of(Option option);
/// With a value: "--capacity 24GiB", or "capacity_bytes=24 * 2**30"; the name alone if option.def has no value.
std::string_view example_of(Option option);

/// From now on, sentences of this process use the names of `surface`: the code that starts the process calls it once,
/// before any sentence is made. Otherwise they are the command line's.
void set_surface(Surface surface);

}  // namespace vramtrack
