// Identity of a process as the kernel tells it under /proc, without its environment and without ptrace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/series.hpp"

namespace vramtrack {

/// The fields of /proc/PID/stat that identify a process.
struct ProcessStat {
  std::string_view name;  ///< comm, into the parsed text; may hold blanks and parentheses
  char state = '?';       ///< 'R', 'S', 'Z', ...
  std::uint64_t start_ticks = 0;
};

/// Parses the text of /proc/PID/stat; nullopt when it is not one. Pure.
std::optional<ProcessStat> parse_stat(std::string_view text);

/// Start ticks (never 0) and state of `pid` under `proc_root` now; nullopt when it is not visible there: ended, in a
/// namespace we cannot see, or hidden. `path` is a scratch buffer, reused to spare an allocation a call.
/// Cost: one open, read, close (about 6 us).
struct Alive {
  std::uint64_t start_ticks = 0;
  char state = '?';
};
std::optional<Alive> process_alive(std::string_view proc_root, std::uint32_t pid, std::string& path);

/// All that is readable of `pid`: user, command, name, cgroup and what follows from it. pid and start_ticks
/// are set, the framework and kind are not. Fields that may not be read stay empty. nullopt when the process is
/// not visible. Cost: four small files and, for a new uid, a look into the user database.
std::optional<ProcessInfo> read_process(const std::string& proc_root, std::uint32_t pid);

/// What of a process is mapped: names for recognise_framework().
struct MappedNames {
  enum class Access : std::uint8_t { read, denied, gone };
  Access access = Access::gone;
  std::vector<std::string> names;  ///< "libc10.so", and "vllm/" for modules of a Python package; each once
};

/// Reads /proc/PID/maps (at most 16 MiB of it). Needs the same user or CAP_SYS_PTRACE, else `denied`.
/// Cost: up to milliseconds for a process with thousands of mappings: call it rarely.
MappedNames read_mapped_names(const std::string& proc_root, std::uint32_t pid);

/// The pid a process has in its own, innermost pid namespace, from the text of /proc/PID/status ("NSpid:");
/// 0 when the kernel does not say. Pure.
std::uint32_t innermost_pid(std::string_view status_text);

}  // namespace vramtrack
