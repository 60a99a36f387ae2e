#include "explain/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/order.hpp"
#include "core/units.hpp"
#include "explain/cause.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// Memory that a process takes in addition to its allocator: its context and the kernels of libraries.
constexpr double kContextBytes = 3 * kGiB;
/// Messages round to two decimals.
constexpr double kRounding = 0.01;

bool is_near(double a, double b) {
  return std::abs(a - b) <= kRounding * std::max(a, b);
}

/// Whether a logger's words name `pid`: "(Worker pid=489)", "[489]". Other numbers are times, lines and ranks.
bool names_pid(std::string_view text, double pid) {
  const std::string digits = fmt::format("{:.0f}", pid);
  for (std::size_t at = text.find(digits); at != std::string_view::npos; at = text.find(digits, at + 1)) {
    const std::string_view front = text.substr(0, at);
    const std::string_view behind = text.substr(at + digits.size());
    if (!behind.empty() && behind.front() >= '0' && behind.front() <= '9') continue;
    if (front.ends_with("pid=") || front.ends_with("pid ") || front.ends_with("pid: ")) return true;
    if ((front.ends_with('[') && behind.starts_with(']')) || (front.ends_with('(') && behind.starts_with(')')))
      return true;
  }
  return false;
}

/// The program that a line names before its message: "myapp: error: X", "[solver] X"; empty: none.
std::string program_of(const Failure& f) {
  const std::string line = lower(trimmed(f.text.starts_with(f.before) ? f.text : f.before + f.text));
  const std::size_t from = line.starts_with('[') ? 1 : 0;
  const std::size_t end = std::min(line.find_first_of(" :]", from), line.size());
  const std::string name = line.substr(from, end - from);
  const bool is_marked = end < line.size() && line[end] == (from == 1 ? ']' : ':');
  const bool is_level = has_any(name, "error|exception|warn|fatal|critical|info|debug|::") ||
                        name.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
  return is_marked && !is_level && name.size() > 2 ? name : "";
}

/// Whether each process has a name that is another one than that of the program that failed.
bool are_others(const Failure& f) {
  const std::string own = program_of(f);
  return !own.empty() && std::none_of(f.others.begin(), f.others.end(), [&own](const OtherProcess& each) {
    const std::string name = lower(each.name);
    return name.empty() || name.find(own) != std::string::npos || own.find(name) != std::string::npos ||
           begins_any(name, "python|java|node|julia|wine|perl|ruby");
  });
}

}  // namespace

void find_own_process(Failure& f) {
  auto& named = f.others;
  const auto is_own = [&f, &named](auto process) {
    f.own_pid = process->pid;
    f.figures.set(Figure::process, process->bytes);
    named.erase(process);
  };
  const auto by_pid = std::find_if(named.begin(), named.end(),
                                   [&f](const OtherProcess& each) { return names_pid(f.before, each.pid); });
  if (by_pid != named.end()) return is_own(by_pid);
  if (f.used_line > 0) return;
  const auto total = f.figures.get(Figure::total);
  if (const auto process = f.figures.get(Figure::process)) {
    // It is listed, as well as "this process", if the two are equal and the device could not hold both.
    const auto same = std::find_if(named.begin(), named.end(), [&](const OtherProcess& each) {
      return is_near(each.bytes, *process) && total && each.bytes + *process > *total;
    });
    if (same != named.end()) is_own(same);
    return;
  }
  if (named.empty()) return;
  const auto allocated = f.figures.get(Figure::allocated);
  const auto cached = f.figures.get(Figure::unallocated);
  const double held = f.figures.get(Figure::reserved).value_or(allocated.value_or(0) + cached.value_or(0));
  // The allocator's memory is part of its process's memory: if only one process fits, it is that one.
  const auto can_be = [held](const OtherProcess& each) {
    return held > 0 && each.bytes >= held * (1 - 2 * kRounding) && each.bytes <= held + kContextBytes;
  };
  if (std::count_if(named.begin(), named.end(), can_be) == 1)
    return is_own(std::find_if(named.begin(), named.end(), can_be));
  f.may_name_itself = !are_others(f);
}

bool is_own_outside(const Failure& f) {
  // Metal counts only this process.
  if (f.wording->name == "torch_mps") return true;
  const auto process = f.figures.get(Figure::process);
  const auto total = f.figures.get(Figure::total);
  const auto free = f.figures.get(Figure::free);
  return process && total && free && *total - *free - *process <= ordinary_outside_bytes(*total);
}

std::string_view speaker_of(std::string_view before) {
  for (const std::string_view key : {"rank", "Rank ", "pid="})
    if (const std::size_t at = before.find(key); at != std::string_view::npos) {
      std::size_t end = at + key.size();
      while (end < before.size() && before[end] >= '0' && before[end] <= '9') ++end;
      if (end > at + key.size()) return before.substr(at, end - at);
    }
  return {};
}

std::string process_name(const OtherProcess& process) {
  if (process.pid <= 0) return process.name;
  return fmt::format("{:.0f}{}{}", process.pid, process.name.empty() ? "" : " ", process.name);
}

namespace {

/// The largest first; `with_pid` and `without` are what comes before one with a pid, and before one with a name alone.
std::string list_words(std::vector<OtherProcess> processes, std::string_view with_pid, std::string_view without) {
  order(processes, [](const OtherProcess& a, const OtherProcess& b) { return a.bytes > b.bytes; });
  std::string out;
  for (std::size_t i = 0; i < processes.size() && i < 3; ++i)
    out += fmt::format("{}{}{} ({})", i == 0 ? "" : ", ", processes[i].pid > 0 ? with_pid : without,
                       process_name(processes[i]), size_words(processes[i].bytes));
  if (processes.size() > 3) out += fmt::format(" and {} more", processes.size() - 3);
  return out;
}

}  // namespace

std::string processes_words(const std::vector<OtherProcess>& processes) {
  return list_words(processes, "process ", "process ");
}

std::string other_processes_words(const std::vector<OtherProcess>& processes, std::string_view between) {
  return fmt::format("{}{}: {}", processes.size() == 1 ? "another process" : "other processes", between,
                     list_words(processes, "pid ", ""));
}

}  // namespace vramtrack::explain
