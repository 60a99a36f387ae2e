#include "cli/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack::cli {
namespace {

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-' || c == '\\') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string entry(const Argument& argument) {
  std::string out = ".TP\n";
  if (argument.takes == Takes::nothing)
    out += fmt::format(".B {}\n", roff(joined(argument.names())));
  else if (!argument.also.empty())
    out += fmt::format(".BI \"{}\" \" {}\"\n", roff(joined(argument.names())), roff(argument.metavar));
  else
    out += fmt::format(".BI {} \" {}\"{}\n", roff(argument.name), roff(argument.metavar),
                       argument.takes == Takes::several ? " \" ...\"" : "");
  out += roff(argument.help) + ".";
  if (!argument.manual.empty()) out += ' ' + roff(argument.manual);
  if (argument.takes == Takes::list) out += " Separate them by commas.";
  if (argument.takes == Takes::repeated) out += " May be given several times.";
  return out + '\n';
}

void add_synopsis(const DeclaredCommand& command, std::string& out) {
  if (!out.empty()) out += ".br\n";
  std::vector<std::string> verbs;
  for (const DeclaredCommand& verb : command.verbs) verbs.emplace_back(verb.info->name);
  out += fmt::format(".B vramtrack {}{}{}\n.RI [ options ]\n", command.full_name, verbs.empty() ? "" : " ",
                     joined(verbs, " | "));
  // All verbs that take operands take the same ones.
  const Arguments& arguments = command.verbs.empty() ? command.arguments : command.verbs.front().arguments;
  for (const Argument& argument : arguments.all()) {
    if (!argument.is_operand()) continue;
    if (argument.with == Completes::programs) out += ".B \\-\\-\n";
    const std::string_view more = argument.takes == Takes::several ? "..." : "";
    out += argument.is_required ? fmt::format(".IR {}{}\n", argument.name, more.empty() ? "" : " ...")
                                : fmt::format(".RI [ {} {}]\n", argument.name, more);
  }
}

void add_commands(std::span<const DeclaredCommand> commands, std::string& out) {
  for (const DeclaredCommand& command : commands) {
    out += fmt::format(".TP\n.B {}\n{}.\n", roff(command.full_name), roff(command.info->help));
    add_commands(command.verbs, out);
  }
}

bool has(const DeclaredCommand& command, Group group) {
  const auto& all = command.arguments.all();
  return std::any_of(all.begin(), all.end(), [&](const Argument& a) { return !a.is_operand() && a.group == group; });
}

std::string entries(const DeclaredCommand& command, Group group) {
  std::string out;
  for (const Argument& argument : command.arguments.all())
    if (!argument.is_operand() && argument.group == group) out += entry(argument);
  return out;
}

void add_sections(std::span<const DeclaredCommand> commands, std::string& out) {
  for (const DeclaredCommand& command : commands) {
    if (has(command, Group::own)) {
      out += fmt::format(".SS {}\n", roff(command.full_name));
      if (has(command, Group::logs)) out += "The options for logs, below, apply, too.\n";
      out += entries(command, Group::own);
    }
    add_sections(command.verbs, out);
  }
}

/// The commands and verbs with options of the group.
std::vector<const DeclaredCommand*> all_with(std::span<const DeclaredCommand> commands, Group group) {
  std::vector<const DeclaredCommand*> out;
  for (const DeclaredCommand& command : commands) {
    if (has(command, group)) out.push_back(&command);
    for (const DeclaredCommand* verb : all_with(command.verbs, group)) out.push_back(verb);
  }
  return out;
}

/// The options of the group, which are the same in all commands: taken from the command with the most of them.
std::string shared_entries(const std::vector<const DeclaredCommand*>& commands, Group group) {
  std::string most;
  for (const DeclaredCommand* command : commands)
    if (std::string its = entries(*command, group); its.size() > most.size()) most = std::move(its);
  return most;
}

}  // namespace

std::string man_synopsis(std::span<const DeclaredCommand> commands) {
  std::string out;
  for (const DeclaredCommand& command : commands) add_synopsis(command, out);
  return out;
}

std::string man_commands(std::span<const DeclaredCommand> commands) {
  std::string out;
  add_commands(commands, out);
  return out;
}

std::string man_options(std::span<const DeclaredCommand> commands) {
  std::string out =
      ".SS Every command\n"
      ".TP\n.BR \\-h \", \" \\-\\-help\nPrint the options and examples of a command.\n"
      ".TP\n.BR \\-v \", \" \\-\\-version\nPrint the version (before any command).\n"
      ".SS Every command but snapshot\n";
  out += shared_entries(all_with(commands, Group::configuration), Group::configuration);
  add_sections(commands, out);
  const auto of_logs = all_with(commands, Group::logs);
  std::vector<std::string> names;
  for (const DeclaredCommand* command : of_logs) names.push_back(command->full_name);
  return out + fmt::format(".SS Logs, for {}\n", joined(names)) + shared_entries(of_logs, Group::logs);
}

}  // namespace vramtrack::cli
