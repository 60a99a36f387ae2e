#include "host/child_program.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "core/errno_words.hpp"

extern char** environ;

namespace vramtrack {
namespace {

std::vector<std::string> environment_with(const std::vector<Variable>& changes) {
  std::vector<std::string> texts;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (std::none_of(changes.begin(), changes.end(), [&](const Variable& change) { return change.name == name; }))
      texts.emplace_back(text);
  }
  for (const Variable& change : changes)
    if (change.value) texts.push_back(change.name + '=' + *change.value);
  return texts;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// The text to write for a program that could not be started.
std::string words_instead_of(const std::string& program) {
  struct stat what {};
  if (program.ends_with(".py") && ::stat(program.c_str(), &what) == 0)
    return fmt::format("give its interpreter, too: -- python {}", program);
  return "give a program and its arguments after '--'";
}

}  // namespace

int shell_status(const ProgramEnd& end) {
  return end.exit_code.value_or(128 + end.signal);
}

Result<pid_t> start_program(const std::vector<std::string>& program, const std::vector<Variable>& changes,
                            int inherited) {
  std::vector<std::string> texts = environment_with(changes);
  std::vector<std::string> words = program;
  const std::vector<char*> environment = pointers(texts);
  const std::vector<char*> arguments = pointers(words);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // A descriptor that is duplicated onto itself loses its close-on-exec flag (POSIX.1-2024; glibc since 2.29).
  if (inherited >= 0) ::posix_spawn_file_actions_adddup2(&actions, inherited, inherited);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);  // which the console ignores; handlers do not survive the start of a program
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return fail(
        fmt::format("cannot run {}: {}; {}", program.front(), errno_words(error), words_instead_of(program.front())));
  return pid;
}

namespace {

std::optional<ProgramEnd> end_of(pid_t pid, int options) {
  int status = 0;
  pid_t done = 0;
  do done = ::waitpid(pid, &status, options);
  while (done < 0 && errno == EINTR);
  if (done == 0) return std::nullopt;
  ProgramEnd end;
  if (done == pid && WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (done == pid && WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace

std::optional<ProgramEnd> ended_program(pid_t pid) {
  return end_of(pid, WNOHANG);
}

ProgramEnd wait_for_program(pid_t pid) {
  return end_of(pid, 0).value_or(ProgramEnd{});
}

}  // namespace vramtrack
