// The agent's answers to a client in another pid namespace, such as a container into which its socket is mounted: only
// the processes of that namespace, with the pids that they have there.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/view.hpp"

namespace vramtrack::agent {

/// The pid namespace of a process of this machine, such as "pid:[4026532201]"; empty if unknown.
using NamespaceOf = std::function<std::string(const ProcessInfo&)>;

/// Reads /proc/PID/ns/pid. Cost: one readlink.
std::string pid_namespace_of(std::uint32_t pid);

/// Devices with their used memory, and the processes of `pid_namespace` with the pids that they have there. Verdicts,
/// alerts and runs of devices, and notifications, are left out: they name other processes.
View own_processes(const View& view, const std::string& pid_namespace, const NamespaceOf& namespace_of);

/// The process with that pid in the client's namespace; empty `pid_namespace`: the agent's own.
std::optional<ProcessInfo> process_of_client(const View& view, std::uint32_t pid, const std::string& pid_namespace,
                                             const NamespaceOf& namespace_of);

}  // namespace vramtrack::agent
