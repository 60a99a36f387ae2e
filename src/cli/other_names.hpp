// What is offered for a word of the command line that is not ours: what other programs call it, or what such a word may
// mean here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/commands.hpp"

namespace vramtrack::cli {

/// Whether `word` names something that can be read: any file but a folder.
bool is_file(std::string_view word);

/// Whether it is the name of a program in Python, which no recording is.
bool is_python(std::string_view word);

/// For a command that we do not have: "the nearest is 'holders'" for `ps`. Empty: nothing is known.
std::string other_command(std::string_view word);

/// For a program that is not ours before its arguments: how it is run under the probe. `words` are the whole command
/// line without our own name. Looks along PATH. Empty: there is no such program.
std::string other_program(std::span<const char* const> words);

/// For a verb that `command` does not have: a file, or another program's verb. Empty: nothing is known.
std::string other_verb(std::string_view command, std::string_view word);

/// For an option that `command` does not have: one that it has, or what to do. Empty: nothing is known.
std::string other_option(const DeclaredCommand& command, std::string_view name);

/// For a word that `command` takes no operand for: the option that takes it, or the command. Empty: nothing is known.
std::string other_argument(const DeclaredCommand& command, const std::string& word);

}  // namespace vramtrack::cli
