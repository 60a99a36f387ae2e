// What a process's cgroup path says about the container, pod and batch job that it belongs to.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// Fields that are not in the path stay empty.
struct CgroupIdentity {
  std::string path;       ///< the most informative line's path: the v2 one, else of a v1 controller
  std::string container;  ///< 64 hex digits; for LXC its name
  std::string pod;        ///< Kubernetes pod UID with dashes
  std::string slurm_job;  ///< "1234", or "1234.0", "1234.batch" with its step
};

/// Reads the text of /proc/PID/cgroup: cgroup v1 (one line a controller), v2 ("0::/path") or both.
/// Knows docker, containerd (cri), cri-o, podman, LXC, Kubernetes with the cgroupfs and the systemd driver,
/// and Slurm on v1 and v2. Of nested containers the innermost is named. Pure; never fails: a line that
/// is not understood says nothing.
CgroupIdentity parse_cgroup(std::string_view text);

}  // namespace vramtrack
