#include "core/nature.hpp"

#include <algorithm>
#include <array>

#include "core/program_kind.hpp"

namespace vramtrack {
namespace {

constexpr std::array<std::string_view, 6> kInterpreters = {"ipython", "ipython3", "bpython", "ptpython", "julia", "R"};

/// The program of a command, without its path.
std::string_view first_of(std::string_view command) {
  const std::string_view first = command.substr(0, command.find(' '));
  return first.substr(first.rfind('/') + 1);
}

}  // namespace

NatureFound nature_of(std::string_view command, std::string_view name, std::string_view kind) {
  const ProgramFound found = vramtrack::program_of(command, name, kind);
  switch (found.kind) {
    case ProgramKind::serving:
      return {ProcessNature::model_server, found.what};
    case ProgramKind::notebook:
      return {ProcessNature::notebook, found.what};
    case ProgramKind::desktop:
      return {ProcessNature::display, found.what};
    case ProgramKind::service:
      return {ProcessNature::driver_service, found.what};
    case ProgramKind::unknown:
    case ProgramKind::training:
    case ProgramKind::batch:
      return {};  // expected to work until it ends
  }
  return {};
}

bool is_multiprocessing_helper(std::string_view command, std::string_view name) {
  for (const std::string_view sign : {"multiprocessing.spawn", "multiprocessing.forkserver", "--multiprocessing-fork"})
    if (command.find(sign) != std::string_view::npos) return true;
  // Titles that helpers give themselves: PyTorch's DataLoader, vLLM's engine and workers, Ray's. A comm has 15 letters.
  for (const std::string_view title : {"pt_data_worker", "VLLM::EngineCor", "VLLM::Worker", "ray::"})
    if (name.starts_with(title) || command.starts_with(title)) return true;
  return false;
}

bool is_bare_interpreter(std::string_view command) {
  const std::string_view program = first_of(command);
  if (std::find(kInterpreters.begin(), kInterpreters.end(), program) != kInterpreters.end()) return true;
  // "python3.11 -i": options only. After -c and -m comes a program.
  if (program.substr(0, 6) != "python") return false;
  std::string_view rest = command.substr(std::min(command.size(), command.find(' ')));
  while (!rest.empty()) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (word.empty()) break;
    if (word == "-i") return true;
    if (word.front() != '-' || word == "-c" || word == "-m" || word == "-") return false;
    rest.remove_prefix(word.size());
  }
  return true;
}

}  // namespace vramtrack
