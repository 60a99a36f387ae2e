// Suggestions for words of the command line that vramtrack does not have: what other programs use them for, or what
// they may mean here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/commands.hpp"

namespace vramtrack::cli {

/// Whether `word` names something that can be read: any file except a folder.
bool is_file(std::string_view word);

/// Whether it is the name of a Python program, which is never a recording.
bool is_python(std::string_view word);

/// For an unknown command: "the nearest is 'holders'" for `ps`. Empty if there is no suggestion.
std::string other_command(std::string_view word);

/// For another program in place of a command: how to run it under the probe. `words` are the whole command line without
/// vramtrack's own name. Searches PATH. Empty if there is no such program.
std::string other_program(std::span<const char* const> words);

/// For a verb that `command` lacks: a file, or another program's verb. Empty if there is no suggestion.
std::string other_verb(std::string_view command, std::string_view word);

/// For an option that `command` lacks: one that it has, or what to do. Empty if there is no suggestion.
std::string other_option(const DeclaredCommand& command, std::string_view name);

/// For a word where `command` takes no operand: the option that takes it, or the command. Empty: no suggestion.
std::string other_argument(const DeclaredCommand& command, const std::string& word);

}  // namespace vramtrack::cli
