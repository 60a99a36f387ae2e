// The rights that tracing other processes requires, and which of them this process lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vramtrack::telemetry {

/// The facts that decide it, as the kernel reports them.
struct TracingRights {
  std::uint64_t capabilities = 0;  ///< effective
  bool is_first_pid_namespace = true, is_first_user_namespace = true;
  bool has_filter = false;  ///< a filter of system calls (seccomp)
  std::string paranoia;     ///< /proc/sys/kernel/perf_event_paranoid; empty if absent
  std::string lockdown;     ///< /sys/kernel/security/lockdown; empty if absent
  int kernel_major = 0, kernel_minor = 0;
  bool has_types = true, has_probes = true;  ///< BTF; uprobes

  static TracingRights of_this_process();
};

/// The reasons why tracing is impossible, one clause each; empty if none is known.
std::vector<std::string> hindrances(const TracingRights& rights);

/// The reasons why some programs are not visible, one clause each.
std::vector<std::string> limitations(const TracingRights& rights);

}  // namespace vramtrack::telemetry
