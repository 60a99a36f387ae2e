// What identifies the work of a process besides its command line: its container's image and its Slurm job's name.
// The same command in another image counts as another program. No daemon is queried, and nothing is executed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack {

/// The image of the container `id` (64 hex digits), as it was requested: "nvcr.io/nvidia/pytorch:26.01-py3". Read from
/// the files that Docker, containerd (Kubernetes), CRI-O or Podman keep below `root` ("/", or the mounted host's root).
/// Their folders belong to root: empty for other users, and for unknown runtimes. Cost: up to four failed opens.
std::string container_image(const std::string& root, std::string_view id);

/// SLURM_JOB_NAME in the process's environment as it was at its start. Needs the same user or CAP_SYS_PTRACE: empty
/// otherwise. Nothing else in the environment is examined or kept.
std::string slurm_job_name(const std::string& proc_root, std::uint32_t pid);

}  // namespace vramtrack
