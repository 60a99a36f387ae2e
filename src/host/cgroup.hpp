// What a process's cgroup path shows about the container, pod, batch job and systemd unit that it belongs to.
//
// The owner of a cgroup's folder may make folders in it with any name, and move its processes there. So a path is
// trusted from the root on: the first Kubernetes pod, Slurm job or systemd unit counts, whatever follows below it,
// and only as far as every folder above it belongs to root. All code in vramtrack that needs the owner of a process
// gets it here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrack {

/// Fields that are not in the path stay empty.
struct CgroupIdentity {
  std::string path;       ///< the most informative line's path: the v2 one, else of a v1 controller
  std::string container;  ///< 64 hex digits; for LXC its name
  std::string pod;        ///< Kubernetes pod UID with dashes
  std::string slurm_job;  ///< "1234", or "1234.0", "1234.batch" with its step
  std::string unit;       ///< of this machine's systemd: "nginx.service", "session-3.scope"
};

/// The owner of a cgroup's folder ("/a/b"; empty: the root) in the hierarchy of `controllers` ("memory",
/// "name=systemd"; empty: v2). nullopt if it cannot be seen, as from our own cgroup namespace; only the path
/// decides then.
using FolderOwner = std::function<std::optional<uid_t>(std::string_view controllers, const std::string& folder)>;

/// Reads the text of /proc/PID/cgroup: cgroup v1 (one line per controller), v2 ("0::/path") or both.
/// Knows docker, containerd (cri), cri-o, podman, LXC, Kubernetes with the cgroupfs and the systemd driver,
/// and Slurm on v1 and v2. The container is the outermost one, but within a pod that of the pod. Pure; never fails: a
/// line that is not understood is ignored.
CgroupIdentity parse_cgroup(std::string_view text, const FolderOwner& owner);

/// The same for a process under `proc_root`, with the folders of the cgroup file system beside it ("/sys/fs/cgroup");
/// nullopt if its cgroup cannot be read. Cost: one small file, and a stat for each folder of its paths.
std::optional<CgroupIdentity> cgroup_of(const std::string& proc_root, std::uint32_t pid);

}  // namespace vramtrack
