// What an agent answers to a client in another pid namespace, such as a container into which its socket is mounted:
// that namespace's own processes, by the pids that they have there, and nothing of any other.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/view.hpp"

namespace vramtrack::agent {

/// For a process of this machine; empty if unknown. "pid:[4026532201]".
using NamespaceOf = std::function<std::string(const ProcessInfo&)>;

/// By /proc/PID/ns/pid. Cost: one readlink.
std::string pid_namespace_of(std::uint32_t pid);

/// Devices with their used memory, and the processes of `pid_namespace`, whose pids become those that they have
/// there. Verdicts, alerts and runs of devices, and notifications, are left out: they name other processes.
View own_processes(const View& view, const std::string& pid_namespace, const NamespaceOf& namespace_of);

/// The process that has that pid for the client; `pid_namespace` empty: the agent's own.
std::optional<ProcessInfo> process_of_client(const View& view, std::uint32_t pid, const std::string& pid_namespace,
                                             const NamespaceOf& namespace_of);

}  // namespace vramtrack::agent
