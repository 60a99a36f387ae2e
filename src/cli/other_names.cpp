#include "cli/other_names.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/ascii.hpp"
#include "core/time.hpp"

namespace vramtrack::cli {
namespace {

/// A name that other programs use, and its equivalent here.
struct OtherName {
  std::string_view name;
  std::string_view ours;    ///< a command or an option; empty if there is none
  std::string_view advice;  ///< what to do in that case
};

constexpr std::string_view kColours = "set NO_COLOR=1 in the environment for output without colours";
constexpr std::string_view kCompletion =
    "the packages install the completions of bash, zsh and fish; in a checkout they are in contrib/completions";
constexpr std::string_view kManual =
    "the packages install the page that 'man vramtrack' shows; in a checkout it is docs/man/vramtrack.1";
constexpr std::string_view kUpdate = "install a new version in the same way as this one (docs/install.md)";
constexpr std::string_view kQuiet = "add >/dev/null: the exit status gives the result";
constexpr std::string_view kService =
    "Ctrl-C ends a command; 'systemctl' starts and stops the services that the .deb installs (docs/install.md)";
constexpr std::string_view kVersion = "'vramtrack --version' prints the version";

constexpr auto kCommands = std::to_array<OtherName>({
    {"alerts", "report", {}},
    {"completion", {}, kCompletion},
    {"completions", {}, kCompletion},
    {"dashboard", "agent", {}},
    {"demo", "simulate", {}},
    {"devices", "doctor", {}},
    {"exec", "run", {}},
    {"forecast", "analyze", {}},
    {"gpu", "holders", {}},
    {"gpus", "holders", {}},
    {"health", "doctor --health", {}},
    {"history", "report", {}},
    {"info", "doctor", {}},
    {"kill", "reclaim", {}},
    {"leak", "analyze", {}},
    {"leaks", "analyze", {}},
    {"list", "holders", {}},
    {"log", "analyze", {}},
    {"logs", "analyze", {}},
    {"ls", "holders", {}},
    {"man", {}, kManual},
    {"manual", {}, kManual},
    {"metrics", "agent", {}},
    {"monitor", "watch", {}},
    {"nvidia-smi", "watch --once", {}},
    {"plot", "report", {}},
    {"predict", "analyze", {}},
    {"profile", "run", {}},
    {"ps", "holders", {}},
    {"record", "watch", {}},
    {"scenarios", "simulate --list", {}},
    {"serve", "agent", {}},
    {"server", "agent", {}},
    {"start", {}, kService},
    {"stat", "watch --once", {}},
    {"status", "watch --once", {}},
    {"stop", {}, kService},
    {"summary", "report", {}},
    {"update", {}, kUpdate},
    {"upgrade", {}, kUpdate},
    {"usage", "holders", {}},
    {"web", "agent", {}},
});

/// A vramtrack option is offered if the command has it; otherwise the advice is.
constexpr auto kOptions = std::to_array<OtherName>({
    {"--address", "--listen", {}},
    {"--batch", "--once", {}},
    {"--bind", "--listen", {}},
    {"--color", {}, kColours},
    {"--daemon", {}, kService},
    {"--host", "--listen", {}},
    {"--last", "--since", {}},
    {"--no-color", {}, kColours},
    {"--no-colour", {}, kColours},
    {"--quiet", {}, kQuiet},
    {"--silent", {}, kQuiet},
    {"--verbose", "--explain", {}},
    {"--version", {}, kVersion},
    {"-V", {}, kVersion},
    {"-b", "--once", {}},
    {"-q", {}, kQuiet},
    {"-v", "--explain", kVersion},
});

/// For a command with verbs. The name is a word, or empty for a file; {} stands for it.
struct OtherVerb {
  std::string_view command;
  std::string_view name;
  std::string_view words;
};

constexpr std::string_view kEdit = "edit the file that 'config path' names";
constexpr std::string_view kShow = "the nearest is 'config show', which checks the file, too";
constexpr auto kVerbs = std::to_array<OtherVerb>({
    {"config", "check", kShow},
    {"config", "edit", kEdit},
    {"config", "get", kShow},
    {"config", "list", kShow},
    {"config", "set", kEdit},
    {"config", "validate", kShow},
    {"oom", "", "the nearest are 'oom show {0}' for a trace and 'explain {0}' for a program's output"},
    {"policy", "", "the nearest is 'policy check --config {}'"},
    {"snapshot", "", "the nearest is 'snapshot summary {}'"},
    {"trace", "", "the nearest is 'trace report {}'"},
});

std::string nearest(std::string_view ours) {
  return fmt::format("the nearest is '{}'", ours);
}

const OtherName* find(std::span<const OtherName> names, std::string_view word) {
  const auto found = std::ranges::find(names, word, &OtherName::name);
  return found == names.end() ? nullptr : &*found;
}

const Argument* option_of(const DeclaredCommand& command, std::string_view name) {
  for (const Argument& argument : command.arguments.all()) {
    const std::vector<std::string> names = argument.names();
    if (!argument.is_operand() && std::ranges::find(names, name) != names.end()) return &argument;
  }
  return nullptr;
}

}  // namespace

bool is_python(std::string_view word) {
  return word.ends_with(".py");
}

bool is_file(std::string_view word) {
  struct stat what {};
  return ::stat(std::string(word).c_str(), &what) == 0 && !S_ISDIR(what.st_mode);
}

std::string other_command(std::string_view word) {
  if (is_python(word)) return fmt::format("the nearest are 'run -- python {0}' and 'check {0}'", word);
  const OtherName* const other = find(kCommands, word);
  if (other == nullptr) return {};
  return other->ours.empty() ? std::string(other->advice) : nearest(other->ours);
}

std::string other_program(std::span<const char* const> words) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing else runs yet
  if (path == nullptr || words.size() < 2) return {};
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const std::string program = fmt::format("{}/{}", folder, words.front());
    if (is_file(program) && ::access(program.c_str(), X_OK) == 0)
      return fmt::format("the nearest is 'run -- {}', which runs it under the probe", fmt::join(words, " "));
  }
  return {};
}

std::string other_verb(std::string_view command, std::string_view word) {
  const auto found = std::ranges::find_if(kVerbs, [&](const OtherVerb& verb) {
    return verb.command == command && (verb.name.empty() ? is_file(word) : verb.name == word);
  });
  return found == kVerbs.end() ? std::string() : fmt::format(fmt::runtime(found->words), word);
}

std::string other_option(const DeclaredCommand& command, std::string_view name) {
  if (const OtherName* const other = find(kOptions, name); other != nullptr) {
    if (!other->ours.empty() && option_of(command, other->ours) != nullptr) return nearest(other->ours);
    return std::string(other->advice);
  }
  if (!name.starts_with("--")) return {};
  const std::string_view bare = name.substr(2);
  if (const Argument* const format = option_of(command, "--format");
      format != nullptr && std::ranges::find(format->words, bare) != format->words.end())
    return nearest(fmt::format("--format {}", bare));
  for (const Argument& argument : command.arguments.all())
    if (argument.is_operand() && lower(argument.name) == bare)
      return fmt::format("{} is given without an option", argument.name);
  return {};
}

std::string other_argument(const DeclaredCommand& command, const std::string& word) {
  const auto offered = [&](std::string_view option) { return option_of(command, option) != nullptr; };
  constexpr int kMostDigitsOfAGpu = 2;
  if (is_file(word)) {
    if (offered("--replay")) return nearest("--replay " + word);
    if (offered("--interval")) return fmt::format("'vramtrack replay {}' plays a recording", word);
  } else if (is_all_digits(word)) {
    for (const std::string_view option : {"--gpu", "--pid"})
      if (offered(option) && (option != "--gpu" || word.size() <= kMostDigitsOfAGpu))
        return nearest(fmt::format("{} {}", option, word));
  } else if (offered("--free") && parse_bytes(word)) {
    return nearest("--free " + word);
  }
  const OtherName* const other = find(kCommands, word);
  return other != nullptr && other->advice == kService ? std::string(kService) : std::string();
}

}  // namespace vramtrack::cli
