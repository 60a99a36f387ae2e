// What the kernel asks of a process that traces others, and what this one lacks of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vramtrack::telemetry {

/// What decides it, as the kernel reports it.
struct TracingRights {
  std::uint64_t capabilities = 0;  ///< effective
  bool is_first_pid_namespace = true, is_first_user_namespace = true;
  bool has_filter = false;  ///< of system calls (seccomp)
  std::string paranoia;     ///< /proc/sys/kernel/perf_event_paranoid; empty: there is none
  std::string lockdown;     ///< /sys/kernel/security/lockdown; empty: there is none
  int kernel_major = 0, kernel_minor = 0;
  bool has_types = true, has_probes = true;  ///< BTF; uprobes

  static TracingRights of_this_process();
};

/// What makes tracing impossible, each in a clause; empty: nothing that is known.
std::vector<std::string> hindrances(const TracingRights& rights);

/// What hides some programs, each in a clause.
std::vector<std::string> limitations(const TracingRights& rights);

}  // namespace vramtrack::telemetry
