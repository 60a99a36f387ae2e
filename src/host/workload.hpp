// What identifies the work of a process besides its command line: its container's image and its Slurm job's name.
// A program in another image is another program. Nothing is asked of a daemon, and nothing is executed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack {

/// The image of the container `id` (64 hex digits), as it was asked for: "nvcr.io/nvidia/pytorch:26.01-py3". Read from
/// what Docker, containerd (Kubernetes), CRI-O or Podman keep below `root` ("/", or where the host's is mounted). Their
/// folders belong to root: empty for anybody else, and where the runtime is not known. Cost: up to four failed opens.
std::string container_image(const std::string& root, std::string_view id);

/// SLURM_JOB_NAME of the process's environment as it was when it began. Needs the same user or CAP_SYS_PTRACE: empty
/// otherwise. Nothing else of the environment is looked at or kept.
std::string slurm_job_name(const std::string& proc_root, std::uint32_t pid);

}  // namespace vramtrack
