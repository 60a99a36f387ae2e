#include "cli/completions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace vramtrack::cli {
namespace {

constexpr std::string_view kWritten = "Generated from what the commands declare (src/cli); do not edit.";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string names(std::span<const DeclaredCommand> commands, std::string_view separator = " ") {
  std::vector<std::string> all;
  for (const DeclaredCommand& command : commands) all.emplace_back(command.info->name);
  return joined(all, separator);
}

/// The commands that can be run; a command with verbs is replaced by its verbs.
std::vector<const DeclaredCommand*> leaves(std::span<const DeclaredCommand> commands) {
  std::vector<const DeclaredCommand*> all;
  for (const DeclaredCommand& command : commands) {
    if (command.verbs.empty()) all.push_back(&command);
    for (const DeclaredCommand* verb : leaves(command.verbs)) all.push_back(verb);
  }
  return all;
}

/// The known words; for a list, also all of them joined.
std::string words_of(const Argument& argument) {
  std::string words = joined(argument.words, " ");
  if (argument.takes == Takes::list && argument.words.size() > 1) words += ' ' + joined(argument.words, ",");
  return words;
}

const Argument* operand_of(const DeclaredCommand& command) {
  for (const Argument& argument : command.arguments.all())
    if (argument.is_operand()) return &argument;
  return nullptr;
}

// ---- bash

/// The shell command that fills COMPREPLY; the current word is $cur.
std::string bash_reply(const Argument& argument) {
  std::string how;
  if (argument.with == Completes::files) how += " -f";
  if (argument.with == Completes::programs) how += " -c -f";
  if (!argument.words.empty()) how += fmt::format(" -W \"{}\"", words_of(argument));
  return how.empty() ? "" : fmt::format("mapfile -t COMPREPLY < <(compgen{} -- \"$cur\")", how);
}

/// One branch per way to complete an option's value, with all options that are completed that way.
std::string bash_values(std::span<const DeclaredCommand> commands) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> branches;  // option, reply, commands
  for (const DeclaredCommand* command : leaves(commands))
    for (const Argument& argument : command->arguments.all())
      if (!argument.is_operand() && argument.takes != Takes::nothing)
        for (const std::string& name : argument.names())
          branches[name][bash_reply(argument)].push_back(command->full_name);
  std::map<std::string, std::vector<std::string>> patterns;  // patterns per reply
  for (const auto& [option, replies] : branches)
    for (const auto& [reply, in] : replies) {
      if (replies.size() == 1)
        patterns[reply].push_back(fmt::format("*' {}'", option));
      else
        for (const std::string& command : in) patterns[reply].push_back(fmt::format("'{} {}'", command, option));
    }
  std::string out;
  for (const auto& [reply, all] : patterns)
    out += fmt::format("    {}) {}return ;;\n", joined(all, " | "), reply.empty() ? "" : reply + "; ");
  return out;
}

// ---- zsh

/// Text within an _arguments specification, which is in single quotes.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return replaced(out, "'", "'\\''");
}

std::string zsh_action(const Argument& argument) {
  if (argument.with == Completes::programs) return "_normal";
  const std::string words = words_of(argument);
  if (argument.with == Completes::nothing) return words.empty() ? "" : fmt::format("({})", words);
  if (words.empty()) return "_files";
  return fmt::format("_alternative \"names\\:name\\:({})\" \"files\\:file\\:_files\"", words);
}

std::string zsh_spec(const Argument& argument) {
  std::string out;
  if (argument.is_operand()) {
    const std::string_view where = argument.with == Completes::programs ? "*::"
                                   : argument.takes == Takes::one       ? "1:"
                                                                        : "*:";
    out = fmt::format("{}{}:{}", where, zsh_text(argument.name), zsh_action(argument));
  } else {
    const bool again = argument.takes == Takes::list || argument.takes == Takes::repeated;
    const std::string names =
        argument.also.empty() ? argument.name : fmt::format("'{{{}}}'", joined(argument.names(), ","));
    if (!argument.also.empty()) out = fmt::format("({})", joined(argument.names(), " "));
    out += fmt::format("{}{}[{}]", again ? "*" : "", names, zsh_text(argument.help));
    if (argument.takes != Takes::nothing)
      out += fmt::format(":{}:{}", zsh_text(argument.metavar), zsh_action(argument));
  }
  return '\'' + out + '\'';
}

std::string zsh_described(std::string_view variable, std::span<const DeclaredCommand> commands) {
  std::string out = fmt::format("{}=(\n", variable);
  for (const DeclaredCommand& command : commands)
    out += fmt::format("        '{}:{}'\n", command.info->name, zsh_text(std::string(command.info->help)));
  return out + "      )\n";
}

// ---- fish

std::string fish_text(const std::string& text) {
  return '"' + replaced(replaced(replaced(text, "\\", "\\\\"), "\"", "\\\""), "$", "\\$") + '"';
}

std::string fish_value(const Argument& argument) {
  if (argument.takes == Takes::nothing) return "";
  std::string out = argument.with == Completes::nothing ? " -x" : " -r";
  if (!argument.words.empty()) out += " -a " + fish_text(words_of(argument));
  return out;
}

/// The options of commands at the same level: one line per option, for all commands that have it.
std::string fish_options(std::span<const DeclaredCommand> commands, const std::string& condition) {
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;  // the end of the line, and its commands
  for (const DeclaredCommand& command : commands)
    for (const Argument& argument : command.arguments.all()) {
      if (argument.is_operand()) continue;
      std::string end;
      for (const std::string& name : argument.names())
        end += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      end += fmt::format("{} -d {}", fish_value(argument), fish_text(argument.help));
      auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == end; });
      if (line == lines.end()) line = lines.insert(line, {end, {}});
      line->second.emplace_back(command.info->name);
    }
  std::string out;
  for (const auto& [end, in] : lines)
    out += fmt::format("complete -c vramtrack -n \"{}__fish_seen_subcommand_from {}\"{}\n", condition, joined(in, " "),
                       end);
  for (const DeclaredCommand& command : commands) {
    const std::string seen = fmt::format("\"{}__fish_seen_subcommand_from {}\"", condition, command.info->name);
    const Argument* const operand = operand_of(command);
    if (operand == nullptr && command.verbs.empty())
      out += fmt::format("complete -c vramtrack -n {} -f\n", seen);
    else if (operand != nullptr && !operand->words.empty())
      out += fmt::format("complete -c vramtrack -n {} -a {}\n", seen, fish_text(words_of(*operand)));
  }
  return out;
}

}  // namespace

std::string bash_completion(std::span<const DeclaredCommand> commands) {
  std::string out = fmt::format(
      "# Completion for bash: copy to /usr/share/bash-completion/completions/vramtrack, or source it.\n# {}\n"
      "_vramtrack() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"{} --help --version\" -- \"$cur\")\n    return\n  fi\n"
      "  case $command in\n",
      kWritten, names(commands));
  for (const DeclaredCommand& command : commands)
    if (!command.verbs.empty())
      out += fmt::format(
          "    {})\n      if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"{} --help\" -- \"$cur\")\n        return\n      fi\n"
          "      command=\"{} ${{COMP_WORDS[2]}}\"\n      ;;\n",
          command.full_name, names(command.verbs), command.full_name);
  out += "  esac\n  case \"$command $prev\" in\n" + bash_values(commands) + "  esac\n  case \"$command $cur\" in\n";
  for (const DeclaredCommand* command : leaves(commands)) {
    std::string options;
    for (const Argument& argument : command->arguments.all())
      if (!argument.is_operand()) options += joined(argument.names(), " ") + ' ';
    out += fmt::format("    '{} -'*) mapfile -t COMPREPLY < <(compgen -W \"{}--help\" -- \"$cur\") ;;\n",
                       command->full_name, options);
    const Argument* const operand = operand_of(*command);
    if (operand != nullptr) out += fmt::format("    '{} '*) {} ;;\n", command->full_name, bash_reply(*operand));
  }
  return out + "  esac\n}\ncomplete -o filenames -F _vramtrack vramtrack\n";
}

std::string zsh_completion(std::span<const DeclaredCommand> commands) {
  std::string out = fmt::format(
      "#compdef vramtrack\n# Completion for zsh: copy into a folder of $fpath, as _vramtrack.\n# {}\n"
      "_vramtrack() {{\n  local -a known\n"
      "  if (( CURRENT == 2 )); then\n    {}"
      "    _describe command known\n"
      "    _arguments '(-h --help)'{{-h,--help}}'[Print this help]' '(-v --version)'{{-v,--version}}'[Print the "
      "version]'\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n",
      kWritten, zsh_described("known", commands));
  for (const DeclaredCommand& command : commands)
    if (!command.verbs.empty())
      out += fmt::format(
          "    {})\n      if (( CURRENT == 2 )); then\n        {}        _describe verb known\n"
          "        return\n      fi\n      command+=\" $words[2]\"\n      shift words\n      (( CURRENT-- )) ;;\n",
          command.full_name, zsh_described("known", command.verbs));
  out += "  esac\n  case $command in\n";
  for (const DeclaredCommand* command : leaves(commands)) {
    out += fmt::format("    '{}')\n      _arguments '(-h --help)'{{-h,--help}}'[Print this help]'", command->full_name);
    for (const Argument& argument : command->arguments.all()) out += " \\\n        " + zsh_spec(argument);
    out += " ;;\n";
  }
  return out + "  esac\n}\n_vramtrack \"$@\"\n";
}

std::string fish_completion(std::span<const DeclaredCommand> commands) {
  std::string out =
      fmt::format("# Completion for fish: copy to ~/.config/fish/completions/vramtrack.fish.\n# {}\n", kWritten);
  for (const DeclaredCommand& command : commands)
    out += fmt::format("complete -c vramtrack -n __fish_use_subcommand -f -a {} -d {}\n", command.info->name,
                       fish_text(std::string(command.info->help)));
  out += "complete -c vramtrack -n __fish_use_subcommand -s v -l version -d \"Print the version\"\n";
  out += "complete -c vramtrack -s h -l help -d \"Print this help\"\n";
  out += fish_options(commands, "");
  for (const DeclaredCommand& command : commands) {
    if (command.verbs.empty()) continue;
    const std::string here = fmt::format("__fish_seen_subcommand_from {}; and ", command.info->name);
    for (const DeclaredCommand& verb : command.verbs)
      out += fmt::format("complete -c vramtrack -n \"{}not __fish_seen_subcommand_from {}\" -f -a {} -d {}\n", here,
                         names(command.verbs), verb.info->name, fish_text(std::string(verb.info->help)));
    out += fish_options(command.verbs, here);
  }
  return out;
}

}  // namespace vramtrack::cli
