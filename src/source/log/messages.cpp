#include "source/log/messages.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>

#include "explain/explanation.hpp"
#include "explain/render.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

namespace {

/// Each message contains one of these in this spelling, which rules out most lines quickly.
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

/// Reports that include a status.
constexpr std::array<std::string_view, 10> kStatuses = {
    "exit code",           "exit status",      "exitcode",           "exit_code",
    "exitstatus",          "exited with code", "exited with status", "exits with return code",
    "code=exited, status", "received signal"};

bool begins_word(std::string_view text, std::size_t at) {
  return at == 0 || !logtext::is_ascii_letter(text[at - 1]);
}

/// Calls `is_it(end)` with the offset after each `phrase` that begins a word, until it returns true.
template <class IsIt>
bool any_of(std::string_view text, std::string_view phrase, IsIt is_it) {
  for (std::size_t at = text.find(phrase); at != std::string_view::npos; at = text.find(phrase, at + 1))
    if (begins_word(text, at) && is_it(at + phrase.size())) return true;
  return false;
}

/// Whether a nonzero number is at `at`, after the characters that separate it from its name: "(exitcode: -9)".
bool nonzero_follows(std::string_view text, std::size_t at) {
  at = text.find_first_not_of(" \t:=(\"'-", at);
  if (at == std::string_view::npos || !logtext::is_digit(text[at])) return false;
  const std::size_t last = text.find_first_not_of("0123456789", at);
  return text.substr(at, last - at).find_first_not_of('0') != std::string_view::npos;
}

/// A Slurm job or step: "*** JOB 4711 ON node1 CANCELLED AT", "srun: Job step aborted".
bool is_of_slurm(std::string_view text) {
  return text.find("job step aborted") != std::string_view::npos ||
         (text.find("*** ") != std::string_view::npos && text.find(" cancelled ") != std::string_view::npos);
}

/// Whether a shell reports a child: "Killed", "train.sh: line 3: 4711 Killed python train.py", "[1]+ Terminated".
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

bool reports_end(std::string_view line) {
  if (!has_root(line)) return false;
  const std::string text = logtext::lower(line);
  const auto is_there = [&](std::string_view phrase) { return any_of(text, phrase, [](std::size_t) { return true; }); };
  const auto has_status = [&](std::string_view phrase) {
    return any_of(text, phrase, [&](std::size_t end) { return nonzero_follows(text, end); });
  };
  return std::any_of(kPhrases.begin(), kPhrases.end(), is_there) ||
         std::any_of(kStatuses.begin(), kStatuses.end(), has_status) || is_of_slurm(text) || is_of_shell(line);
}

namespace {

/// Each message has one of these, which rules out most other lines quickly.
constexpr std::string_view kMemory = "memory";  // after "of "
constexpr std::array<std::string_view, 9> kMarks = {kMemory,
                                                    " OOM ",
                                                    "OfMemory",
                                                    "OF_MEMORY",
                                                    "MemoryAllocation",
                                                    "ALLOC_FAILED",
                                                    "No available memory",
                                                    "Not enough memory",
                                                    "Device memory allocation"};

bool may_be_message(std::string_view line) {
  static const FirstPairs marks(kMarks);
  return marks.any_of(line, [&](std::string_view mark, std::size_t at) {
    return mark != kMemory || (at >= 3 && line[at - 3] == 'o' && line[at - 2] == 'f');
  });
}

}  // namespace

bool reports_out_of_memory(std::string_view line) {
  if (!may_be_message(line)) return false;
  for (const explain::Message& message : explain::read_messages(line))
    // A line that does not name the memory's owner does not show that a GPU is meant.
    if (message.wording->role == explain::Role::device && message.wording->name != "statement") return true;
  return false;
}

std::string why_out_of_memory(std::string_view line) {
  const auto explanation = explain::explain(explain::read_messages(line));
  if (!explanation || explanation->cause == explain::Cause::unknown) return "";
  // The readings, not the message alone, show whether the need has grown.
  const bool is_own_need = explanation->cause == explain::Cause::too_big || explanation->cause == explain::Cause::full;
  return is_own_need ? explanation->because : explain::headline(*explanation, "");
}

namespace {

/// The first whole number that follows one of `words`.
std::optional<std::uint32_t> number_behind(std::string_view line, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
      const std::string_view rest = line.substr(at + word.size());
      std::uint32_t number = 0;
      if (std::from_chars(rest.data(), rest.data() + rest.size(), number).ec == std::errc{}) return number;
    }
  return std::nullopt;
}

/// The owner of the limit in a message that gives only the limit itself.
std::string limit_owner(std::string_view line, const explain::Wording& wording) {
  if (wording.program.starts_with("PyTorch")) return "PyTorch's per_process_memory_fraction";
  if (logtext::lower(line).find("hami") != std::string::npos) return "HAMi's CUDA_DEVICE_MEMORY_LIMIT";
  return wording.setting.empty() ? "a limit of the program" : std::string(wording.setting);
}

}  // namespace

std::optional<NamedLimit> limit_of_message(std::string_view line) {
  using explain::Figure;
  constexpr double kMostBytes = 1e18;  // more than any machine has, but still convertible
  for (const explain::Message& message : explain::read_messages(line)) {
    const explain::Figures& f = message.figures;
    const auto allowed = f.get(Figure::allowed);
    if (message.wording->role != explain::Role::device || !allowed || *allowed < 1) continue;
    // A limit on a single request does not limit the memory held.
    auto held = f.get(Figure::reserved);
    if (!held && f.get(Figure::allocated)) held = *f.get(Figure::allocated) + f.get(Figure::unallocated).value_or(0);
    if (!held) held = f.get(Figure::used);
    if (!held) continue;
    return NamedLimit{static_cast<std::uint64_t>(std::min(*allowed, kMostBytes)),
                      static_cast<std::uint64_t>(std::clamp(*held, 0.0, kMostBytes)),
                      limit_owner(line, *message.wording)};
  }
  return std::nullopt;
}

NamedProcesses processes_of_message(std::string_view line) {
  const auto as_pid = [](double pid) {
    return pid > 0 && pid <= UINT32_MAX ? static_cast<std::uint32_t>(pid) : std::uint32_t{0};
  };
  NamedProcesses out;
  if (const auto explanation = explain::explain(explain::read_messages(line))) {
    const explain::Failure& failure = explanation->failure();
    out.own = as_pid(failure.own_pid);
    if (!failure.may_name_itself)
      for (const explain::OtherProcess& other : failure.others)
        if (const std::uint32_t pid = as_pid(other.pid); pid != 0) out.others.push_back(pid);
  }
  if (out.own == 0) out.own = number_behind(line, {"pid:", "pid="}).value_or(0);
  return out;
}

bool reports_host_kill(std::string_view line) {
  /// Programs that kill others, or report what was killed.
  constexpr std::array<std::string_view, 9> kWhoEnds = {"Linux", "systemd", "earlyoom",   "Slurm", "PBS",
                                                        "LSF",   "Docker",  "Kubernetes", "Ray"};
  for (const explain::Message& message : explain::read_messages(line))
    if (message.wording->role == explain::Role::host &&
        std::find(kWhoEnds.begin(), kWhoEnds.end(), message.wording->program) != kWhoEnds.end())
      return true;
  return false;
}

std::uint32_t pid_killed(std::string_view line) {
  return number_behind(line, {"Killed process ", "pid:", "pid=", "pid: "}).value_or(0);
}

std::optional<int> gpu_of_message(std::string_view line) {
  const auto number = number_behind(line, {"GPU ", "Device "});
  return number && *number <= INT_MAX ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

bool reports_lost_gpu(std::string_view line) {
  if (line.find("GPU") == std::string_view::npos) return false;
  constexpr std::array<std::string_view, 3> kMessages = {"Unable to determine the device handle for ", "GPU is lost",
                                                         "fallen off the bus"};
  return std::any_of(kMessages.begin(), kMessages.end(),
                     [&](std::string_view message) { return line.find(message) != std::string_view::npos; });
}

CellError cell_error(std::string_view cell) {
  if (cell.size() > 1 && cell.front() == '[' && cell.back() == ']') cell = cell.substr(1, cell.size() - 2);
  if (cell.empty() || logtext::is_digit(cell.front())) return CellError::none;
  const auto is = [&](std::string_view words) { return logtext::same_letters(cell, words); };
  if (is("GPU is lost") || is("GPU requires reset") || is("Reset required")) return CellError::gpu_lost;
  return is("Unknown Error") || is("ERR!") || is("Insufficient Permissions") ? CellError::failed : CellError::none;
}

}  // namespace vramtrack
