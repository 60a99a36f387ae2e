// Identity of a process as the kernel shows it under /proc, without ptrace. The only part of its environment that is
// read is the name of its Slurm job, if it has one; host/progress reads the number of its ranks and their port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/series.hpp"

namespace vramtrack {

/// The fields of /proc/PID/stat that identify a process and show how much of the host it takes.
struct ProcessStat {
  std::string_view name;  ///< comm, into the parsed text; may contain spaces and parentheses
  char state = '?';       ///< 'R', 'S', ...; 'Z', 'X': it has ended, as have all its threads
  std::uint64_t start_ticks = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t group = 0;  ///< process group
  std::uint32_t session = 0;
  bool is_forked_only = false;         ///< it has started no program since it was forked
  std::uint64_t terminal = 0;          ///< number of its terminal; 0: none
  std::int64_t foreground_group = -1;  ///< the foreground process group of that terminal
  std::uint64_t cpu_ticks = 0;         ///< user and system time of all its threads
  std::uint64_t waited_ticks = 0;      ///< of the children that it has waited for
  std::uint64_t page_faults = 0;       ///< pages that it touched and the kernel had to provide
  std::optional<std::uint64_t> resident_pages;
};

/// Parses the text of /proc/PID/stat; nullopt if it is not one. Pure.
std::optional<ProcessStat> parse_stat(std::string_view text);

/// Start ticks (never 0), state and load of `pid` under `proc_root` now; nullopt if it does not live there: ended,
/// reaped or not, in a namespace we cannot see, or hidden. The only test of whether a process lives. `path` is a
/// scratch buffer, reused to save an allocation per call. Cost: one open, read, close (about 6 us).
struct Alive {
  std::uint64_t start_ticks = 0;
  char state = '?';
  double cpu_s = 0;  ///< user and system time so far
  std::optional<std::uint64_t> resident_bytes;
};
std::optional<Alive> process_alive(std::string_view proc_root, std::uint32_t pid, std::string& path);

/// The seconds in that many ticks, the unit in which the kernel reports starts and CPU time of processes.
double tick_seconds(std::uint64_t ticks);
/// Seconds since the machine started, from /proc/uptime; nullopt if it cannot be read.
std::optional<double> machine_uptime_s(const std::string& proc_root);
/// How long a process with these start ticks has lived when the machine has been up for `up_s`. Pure.
double process_age_s(double up_s, std::uint64_t start_ticks);

/// All that is readable of `pid`: user, command, name, cgroup and what follows from it. pid and start_ticks
/// are set, the framework and kind are not. Fields that may not be read stay empty. nullopt if the process is
/// not visible. Cost: four small files, those of workload.hpp for a process in a container or a Slurm job, and for a
/// new uid a look into the user database.
std::optional<ProcessInfo> read_process(const std::string& proc_root, std::uint32_t pid);

/// Whether ProcessInfo::user may be `name` here: a user of this machine, or a number.
bool user_exists(const std::string& name);

/// Names of the files that a process has mapped, for recognise_framework().
struct MappedNames {
  enum class Access : std::uint8_t { read, denied, gone };
  Access access = Access::gone;
  std::vector<std::string> names;  ///< "libc10.so", and "vllm/" for modules of a Python package; each once
};

/// Reads /proc/PID/maps (at most 16 MiB of it). Needs the same user or CAP_SYS_PTRACE, else `denied`.
/// Cost: up to milliseconds for a process with thousands of mappings: call it rarely.
MappedNames read_mapped_names(const std::string& proc_root, std::uint32_t pid);

/// The pid that a process has in its own, innermost pid namespace, from the text of /proc/PID/status ("NSpid:");
/// 0 if the kernel does not report it. Pure.
std::uint32_t innermost_pid(std::string_view status_text);

}  // namespace vramtrack
