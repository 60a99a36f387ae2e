#include "source/log/end_message.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "source/log/first_pairs.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// Each message has one of these in this spelling, so that most lines are ruled out quickly.
constexpr std::array<std::string_view, 19> kRoots = {"xit",       "XIT",       "kill", "Kill",  "KILL", "gnal", "SIG",
                                                     "rmin",      "died",      "DIED", "start", "gmen", "mped", "rrupt",
                                                     "DiedError", "DeadError", "CANC", "oom",   "abort"};

bool has_root(std::string_view line) {
  static const FirstPairs roots(kRoots);
  return roots.any_of(line, [](std::string_view, std::size_t) { return true; });
}

/// Reports that need no number.
constexpr std::array<std::string_view, 41> kPhrases = {
    // shells and the kernel
    "segmentation fault", "core dumped", "killed process", "keyboardinterrupt", "sigkill", "sigsegv", "sigabrt",
    "received sigterm", "received sigint", "caught sigterm", "by sigterm", "by sigint", "killed by", "was killed",
    "is killed", "were killed", "died with signal", "died with <signals", "terminated by signal",
    "terminated with signal", "exited on signal", "interrupted by signal",
    // init systems and container runtimes
    "code=killed", "code=dumped", "result 'exit-code'", "result 'signal'", "result 'oom-kill'", "restart counter is at",
    "oomkilled", "oom-kill event", "oom_kill event", "will be restarted", "restarting failed container",
    // launchers and servers: torchrun, Ray, vLLM
    "restarting worker group", "will restart worker group", "worker died", "process died", "proc died",
    "died unexpectedly", "actordiederror", "enginedeaderror"};

/// Reports with the status that follows.
constexpr std::array<std::string_view, 10> kStatuses = {
    "exit code",           "exit status",      "exitcode",           "exit_code",
    "exitstatus",          "exited with code", "exited with status", "exits with return code",
    "code=exited, status", "received signal"};

bool begins_word(std::string_view text, std::size_t at) {
  return at == 0 || !logtext::is_alpha(text[at - 1]);
}

/// Calls `is_it(end)` with the offset behind each `phrase` that begins a word, until it returns true.
template <class IsIt>
bool any_of(std::string_view text, std::string_view phrase, IsIt is_it) {
  for (std::size_t at = text.find(phrase); at != std::string_view::npos; at = text.find(phrase, at + 1))
    if (begins_word(text, at) && is_it(at + phrase.size())) return true;
  return false;
}

/// Whether a number other than zero stands at `at`, behind the signs that part it from its name: "(exitcode: -9)".
bool nonzero_follows(std::string_view text, std::size_t at) {
  at = text.find_first_not_of(" \t:=(\"'-", at);
  if (at == std::string_view::npos || !logtext::is_digit(text[at])) return false;
  const std::size_t last = text.find_first_not_of("0123456789", at);
  return text.substr(at, last - at).find_first_not_of('0') != std::string_view::npos;
}

/// A job or step of Slurm: "*** JOB 4711 ON node1 CANCELLED AT", "srun: Job step aborted".
bool is_of_slurm(std::string_view text) {
  return text.find("job step aborted") != std::string_view::npos ||
         (text.find("*** ") != std::string_view::npos && text.find(" cancelled ") != std::string_view::npos);
}

/// As a shell tells of a child: "Killed", "train.sh: line 3:  4711 Killed    python train.py", "[1]+  Terminated".
bool is_of_shell(std::string_view line) {
  for (const std::string_view word : {"Killed", "Terminated"}) {
    const std::size_t at = line.find(word);
    if (at == std::string_view::npos) continue;
    const std::string_view before = logtext::trim(line.substr(0, at));
    const std::string_view after = line.substr(at + word.size());
    if (before.empty() ? logtext::trim(after).empty()
                       : (after.empty() || after.front() == ' ') &&
                             (logtext::is_digit(before.back()) || before.ends_with("]+") || before.ends_with("]-")))
      return true;
  }
  return false;
}

}  // namespace

bool tells_end(std::string_view line) {
  if (!has_root(line)) return false;
  const std::string text = logtext::lowered(line);
  const auto is_there = [&](std::string_view phrase) { return any_of(text, phrase, [](std::size_t) { return true; }); };
  const auto has_status = [&](std::string_view phrase) {
    return any_of(text, phrase, [&](std::size_t end) { return nonzero_follows(text, end); });
  };
  return std::any_of(kPhrases.begin(), kPhrases.end(), is_there) ||
         std::any_of(kStatuses.begin(), kStatuses.end(), has_status) || is_of_slurm(text) || is_of_shell(line);
}

}  // namespace vramtrack
