#include "source/log/end_message.hpp"

#include <algorithm>
#include <string>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// Each phrase below contains one of these, so that most lines are ruled out quickly.
constexpr std::string_view kRoots[] = {"xit",    "illed", "SIG",    "ignal",     "died",
                                       "estart", "Segm",  "dumped", "DeadError", "CANCELLED"};

constexpr std::string_view kPhrases[] = {
    // shells, init systems, container runtimes
    "killed", "oomkilled", "terminated by signal", "received signal", "exited with", "exited on signal",
    "process exited", "exit code", "exit status", "exitcode", "segmentation fault", "core dumped", "sigkill", "sigterm",
    "sigsegv", "sigabrt", "restart counter is at",
    // launchers and servers: torchrun, Ray, vLLM
    "died with signal", "worker died", "process died", "proc died", "died unexpectedly", "enginedeaderror",
    "restarting", "will restart",
    // Slurm: "*** JOB 4711 ON node1 CANCELLED AT", "*** STEP 4711.0 ... DUE TO TIME LIMIT"
    "*** job", "*** step"};

/// Whether `phrase` begins a word of `text`: a "skilled worker" was not killed.
bool has_words(std::string_view text, std::string_view phrase) {
  for (std::size_t at = text.find(phrase); at != std::string_view::npos; at = text.find(phrase, at + 1))
    if (at == 0 || !logtext::is_alpha(text[at - 1])) return true;
  return false;
}

}  // namespace

bool tells_end(std::string_view line) {
  const auto has = [&](std::string_view root) { return line.find(root) != std::string_view::npos; };
  if (std::none_of(std::begin(kRoots), std::end(kRoots), has)) return false;
  const std::string text = logtext::lowered(line);
  return std::any_of(std::begin(kPhrases), std::end(kPhrases),
                     [&](std::string_view phrase) { return has_words(text, phrase); });
}

}  // namespace vramtrack
