#include "telemetry/rights.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "host/small_file.hpp"

namespace vramtrack::telemetry {
namespace {

/// The inodes of the machine's initial namespaces (linux/proc_ns.h), the same on every machine.
constexpr ino_t kFirstPidNamespace = 0xefff'fffc, kFirstUserNamespace = 0xefff'fffd;

constexpr int kFewestMajor = 5, kFewestMinor = 15;
constexpr int kLinksMajor = 6, kLinksMinor = 6;  ///< the first with links of many uprobes, which need no CAP_SYS_ADMIN

bool is_inode(const char* path, ino_t inode) {
  struct stat found {};
  return ::stat(path, &found) != 0 || found.st_ino == inode;
}

}  // namespace

TracingRights TracingRights::of_this_process() {
  TracingRights rights;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) rights.capabilities = std::strtoull(line.c_str() + 7, nullptr, 16);
    if (line.starts_with("Seccomp:")) rights.has_filter = std::strtoul(line.c_str() + 8, nullptr, 10) != 0;
  }
  rights.is_first_pid_namespace = is_inode("/proc/self/ns/pid", kFirstPidNamespace);
  rights.is_first_user_namespace = is_inode("/proc/self/ns/user", kFirstUserNamespace);
  rights.paranoia = first_line("/proc/sys/kernel/perf_event_paranoid");
  rights.lockdown = first_line("/sys/kernel/security/lockdown");
  utsname system{};
  if (::uname(&system) == 0) std::sscanf(system.release, "%d.%d", &rights.kernel_major, &rights.kernel_minor);
  rights.has_types = ::access("/sys/kernel/btf/vmlinux", F_OK) == 0;
  rights.has_probes = ::access("/sys/bus/event_source/devices/uprobe", F_OK) == 0;
  return rights;
}

std::vector<std::string> hindrances(const TracingRights& rights) {
  std::vector<std::string> out;
  const auto lacks = [&](int capability) {
    return (rights.capabilities >> static_cast<unsigned>(capability) & 1U) == 0;
  };
  if (rights.kernel_major < kFewestMajor || (rights.kernel_major == kFewestMajor && rights.kernel_minor < kFewestMinor))
    out.push_back(
        fmt::format("the kernel is {}.{}: 5.15 or newer is needed", rights.kernel_major, rights.kernel_minor));
  if (!rights.has_types)
    out.emplace_back("the kernel was built without BTF (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)");
  if (!rights.has_probes) out.emplace_back("the kernel was built without uprobes (CONFIG_UPROBE_EVENTS)");
  if (rights.lockdown.find("[confidentiality]") != std::string::npos)
    out.emplace_back(
        "the kernel is locked down for confidentiality, which does not allow BPF to read memory (lockdown=)");
  if (!rights.is_first_user_namespace)
    out.emplace_back("this is a user namespace (a rootless container), whose capabilities do not count for BPF");
  // Events identify processes by their pids in the initial namespace.
  if (!rights.is_first_pid_namespace)
    out.emplace_back(
        "this container has its own pid namespace: start it with hostPID: true (Kubernetes) or docker run "
        "--pid=host");
  const bool has_links =
      rights.kernel_major > kLinksMajor || (rights.kernel_major == kLinksMajor && rights.kernel_minor >= kLinksMinor);
  if (lacks(CAP_SYS_ADMIN)) {
    if (lacks(CAP_BPF)) out.emplace_back("the capability CAP_BPF is missing");
    if (lacks(CAP_PERFMON))
      out.push_back("the capability CAP_PERFMON is missing" +
                    (rights.paranoia.empty() ? ""
                                             : fmt::format(", which no value of kernel.perf_event_paranoid (it is {}) "
                                                           "replaces",
                                                           rights.paranoia)));
    // "perf/core: Require CAP_SYS_ADMIN for uprobes", which distributions have backported to older kernels.
    if (!has_links)
      out.emplace_back("before Linux 6.6, with its updates since 2025, probes need the capability CAP_SYS_ADMIN");
  }
  if (out.empty() && rights.has_filter)
    out.emplace_back("this process has a system-call filter, which must allow bpf and perf_event_open");
  return out;
}

std::vector<std::string> limitations(const TracingRights& rights) {
  std::vector<std::string> out;
  if ((rights.capabilities >> static_cast<unsigned>(CAP_SYS_PTRACE) & 1U) == 0)
    out.emplace_back("the capability CAP_SYS_PTRACE is missing: programs of other users cannot be seen");
  return out;
}

}  // namespace vramtrack::telemetry
