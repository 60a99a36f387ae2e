// Finds the runs of a user and asks them what they hold: the other side of run/control.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::run {

inline constexpr std::chrono::milliseconds kControlPatience{2000};

/// What the run in `folder` answers to `line`; an Error where nobody answers in `patience`, all in all. `owner`: whose
/// the run must be; nullopt: anybody's.
Result<std::string> ask_control(const std::string& folder, std::string_view line,
                                std::chrono::milliseconds patience = kControlPatience,
                                std::optional<std::uint32_t> owner = std::nullopt);

/// The folder of runs: in XDG_RUNTIME_DIR, else in the folder for temporary files, with the user's number in its name.
/// Made with mode 0700 where it is not there; an Error where it is another user's.
Result<std::string> runs_folder();
/// Those of this user's runs that answer, by folder.
std::vector<std::string> running_runs();

/// A living process whose allocations a run records.
struct ProbedPid {
  std::uint32_t pid = 0;
  std::string folder;  ///< of its run
  friend bool operator==(const ProbedPid&, const ProbedPid&) = default;
};
/// Those of user `uid`, by pid. Nobody is asked: each has a ring in the folder of its run. Of another user than this
/// process's, only root sees any. Cost: one look into a folder a run.
std::vector<ProbedPid> probed_processes(std::uint32_t uid);
/// Whose the process is; nullopt: there is no such process.
std::optional<std::uint32_t> owner_of_process(std::uint32_t pid);

}  // namespace vramtrack::run
