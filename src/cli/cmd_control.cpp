// control: changes the limits of a program under 'vramtrack run', sets marks, and shows the memory that it holds.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/commands.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#include "host/small_file.hpp"
#include "run/client/ask.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNothingDone = 2;
/// A report waits for the program's next allocation, for its main thread, and takes a second.
constexpr std::chrono::seconds kKeptPatience{20};
constexpr std::chrono::milliseconds kKeptEvery{50};

struct ControlOptions {
  std::string run;  ///< pid of the run or of a process in it; empty: the only run
  std::optional<std::uint64_t> limit_bytes;
  std::optional<std::uint64_t> soft_limit_bytes;
  std::string mark;
  bool kept = false;
};

/// The value after `name=` in "ok limit=1 processes=2:3,4:5".
std::string field_of(const std::string& answer, const std::string& name) {
  const std::size_t at = answer.find(' ' + name + '=');
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 2;
  return answer.substr(begin, answer.find(' ', begin) - begin);
}

/// "4242:1073741824,4243:0" as pairs.
std::vector<std::pair<std::string, std::uint64_t>> processes_of(const std::string& answer) {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  std::string_view rest;
  const std::string list = field_of(answer, "processes");
  for (rest = list; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t colon = one.find(':');
    if (colon == std::string_view::npos) continue;
    all.emplace_back(one.substr(0, colon), parse_unsigned(one.substr(colon + 1)).value_or(0));
  }
  return all;
}

bool is_of(const std::string& folder, const std::string& answer, const std::string& pid) {
  if (std::filesystem::path(folder).filename() == pid) return true;
  for (const auto& [process, bytes] : processes_of(answer))
    if (process == pid) return true;
  return false;
}

/// The folder of the run that the arguments select.
Result<std::string> chosen(const std::string& pid) {
  std::vector<std::string> found;
  for (const std::string& folder : run::running_runs())
    if (const auto answer = run::ask_control(folder, "status"); answer && (pid.empty() || is_of(folder, *answer, pid)))
      found.push_back(folder);
  if (found.size() == 1) return found.front();
  if (found.empty())
    return fail(pid.empty() ? "you have no program running under 'vramtrack run'"
                            : fmt::format("process {} is not running under a 'vramtrack run' of yours", pid));
  std::string pids;
  for (const std::string& folder : found)
    pids += (pids.empty() ? "" : ", ") + std::filesystem::path(folder).filename().string();
  return fail(fmt::format("several programs are running under 'vramtrack run': name one of {}", pids));
}

std::string size_or_none(const std::string& bytes) {
  const std::uint64_t number = parse_unsigned(bytes).value_or(0);
  return number == 0 ? "none" : format_bytes(static_cast<double>(number));
}

/// Shows what keeps memory, as the program itself finds it at its next allocation. Returns an exit code.
int show_kept(const std::string& folder, Console& console) {
  const auto until = std::chrono::steady_clock::now() + kKeptPatience;
  std::string request = "kept";
  for (;;) {
    const auto answer = run::ask_control(folder, request);
    if (!answer) {
      console.error(answer.error().message);
      return kNothingDone;
    }
    if (const std::string_view asked = "ok asked "; answer->starts_with(asked)) {
      request = "kept " + answer->substr(asked.size());
    } else if (answer->starts_with("ok found")) {
      std::vector<std::string> keepers, reasons;
      for (std::size_t at = answer->find('\t'); at != std::string::npos;) {
        const std::size_t end = answer->find('\t', at + 1);
        std::string line = answer->substr(at + 1, end - at - 1);
        const bool is_reason = line.starts_with('!');
        if (is_reason) line.erase(0, 1);
        (is_reason ? reasons : keepers).push_back("process " + printable(line.insert(line.find(' '), 1, ':')) + '\n');
        at = end;
      }
      for (const std::string& line : keepers) console.write(line);
      for (const std::string& line : reasons) console.write(line);
      if (keepers.empty() && reasons.empty()) console.write("no variable in the program keeps GPU memory\n");
      return keepers.empty() && !reasons.empty() ? kNothingDone : 0;
    } else if (std::chrono::steady_clock::now() > until) {
      console.error(fmt::format(
          "the program has not answered for {} s: it answers at its next allocation, so ask again while it is working",
          kKeptPatience.count()));
      return kNothingDone;
    } else {
      std::this_thread::sleep_for(kKeptEvery);
    }
  }
}

int control(const ControlOptions& options, Console& console) {
  const auto folder = chosen(options.run);
  if (!folder) {
    console.error(folder.error().message);
    return kNothingDone;
  }
  if (options.kept) return show_kept(*folder, console);
  std::vector<std::string> requests;
  if (options.limit_bytes) requests.push_back(fmt::format("limit {}", *options.limit_bytes));
  if (options.soft_limit_bytes) requests.push_back(fmt::format("soft-limit {}", *options.soft_limit_bytes));
  if (!options.mark.empty()) requests.push_back("mark " + options.mark);
  requests.emplace_back("status");
  std::string answered;
  for (const std::string& request : requests) {
    const auto answer = run::ask_control(*folder, request);
    if (!answer) {
      console.error(answer.error().message);
      return kNothingDone;
    }
    answered = *answer;
  }
  console.write(fmt::format("limit {}, soft limit {}\n", size_or_none(field_of(answered, "limit")),
                            size_or_none(field_of(answered, "soft-limit"))));
  for (const auto& [process, bytes] : processes_of(answered))
    console.write(fmt::format("process {} holds {}\n", process, format_bytes(static_cast<double>(bytes))));
  return 0;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<ControlOptions>();
  arguments.operand("PID", "The run, or one of its processes (default: the only run there is)", text(options->run));
  arguments.option("--limit", "SIZE", "From now on, refuse allocations beyond this on each device; 0: no limit",
                   memory_limit([options](std::uint64_t bytes) { options->limit_bytes = bytes; }));
  arguments.option("--soft-limit", "SIZE", "Warn when a process holds more than this on a device; 0: never",
                   memory_limit([options](std::uint64_t bytes) { options->soft_limit_bytes = bytes; }));
  arguments.option("--mark", "NAME", "Name this moment in the trace", text(options->mark));
  arguments.flag("--kept", "Show which variables of a Python program keep GPU memory", options->kept);
  return [options](Console& console) { return control(*options, console); };
}

}  // namespace

const CommandInfo control_command{"control",
                                  "Change the limits of a program under 'vramtrack run', or mark a moment in its trace",
                                  "Examples:\n"
                                  "  vramtrack control                            what the only run holds\n"
                                  "  vramtrack control 4242 --limit 20GiB\n"
                                  "  vramtrack control --mark \"after warm-up\"\n"
                                  "  vramtrack control --kept                     what keeps memory, by variable\n"
                                  "Exit: 0 done, 2 no such run, or what keeps memory could not be determined.",
                                  declare};

}  // namespace vramtrack::cli
