// Finds a user's runs and queries them: the client side of run/control.hpp.
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

/// The answer of the run in `folder` to `line`; an Error if there is none within `patience` in total. `owner`: the
/// required owner of the run; nullopt: any.
Result<std::string> ask_control(const std::string& folder, std::string_view line,
                                std::chrono::milliseconds patience = kControlPatience,
                                std::optional<std::uint32_t> owner = std::nullopt);

/// The folder of runs: in XDG_RUNTIME_DIR, else in the folder for temporary files, with the user's number in its name.
/// Created with mode 0700 if missing; an Error if it belongs to another user.
Result<std::string> runs_folder();
/// The folders of this user's runs that answer.
std::vector<std::string> running_runs();

/// A living process with allocations that a run records.
struct ProbedPid {
  std::uint32_t pid = 0;
  std::string folder;  ///< the folder of its run
  friend bool operator==(const ProbedPid&, const ProbedPid&) = default;
};
/// The processes of user `uid`, by pid. Queries no run, because each process has a ring in the folder of its run. Only
/// root can see the processes of other users. Cost: one directory read per run.
std::vector<ProbedPid> probed_processes(std::uint32_t uid);
/// The owner of the process; nullopt: no such process.
std::optional<std::uint32_t> owner_of_process(std::uint32_t pid);

}  // namespace vramtrack::run
