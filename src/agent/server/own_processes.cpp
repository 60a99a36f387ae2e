#include "agent/server/own_processes.hpp"

#include <fmt/format.h>

#include "host/small_file.hpp"

namespace vramtrack::agent {
namespace {

/// Removes what a process's verdict says about another one: "...; pid 42, whose memory had run out at ...".
void cut_others(std::string& because) {
  because.resize(std::min(because.size(), because.find("; pid ")));
}

bool is_of(const ProcessInfo& process, const std::string& pid_namespace, const NamespaceOf& namespace_of) {
  return process.ns_pid != 0 && !pid_namespace.empty() && namespace_of(process) == pid_namespace;
}

}  // namespace

std::string pid_namespace_of(std::uint32_t pid) {
  return link_target(fmt::format("/proc/{}/ns/pid", pid));
}

View own_processes(const View& view, const std::string& pid_namespace, const NamespaceOf& namespace_of) {
  View out;
  out.time = view.time;
  out.clock_is_relative = view.clock_is_relative;
  for (const SeriesView& s : view.series) {
    if (s.key.pid == 0) {
      if (s.key.metric != Metric::device_used) continue;
      SeriesView device = s;
      device.verdict = {};
      device.paging.clear();
      device.alerts.clear();
      device.suspicions.clear();
      device.runs.clear();
      device.explain.clear();
      device.headroom.reset();
      device.level_bytes.reset();
      out.series.push_back(std::move(device));
      continue;
    }
    if (!s.process || s.ended || !is_of(*s.process, pid_namespace, namespace_of)) continue;
    SeriesView own = s;
    own.key.pid = own.process->pid = s.process->ns_pid;
    own.process->ns_pid = 0;
    own.process->cgroup.clear();  // a path on the host
    own.headroom.reset();         // it may name others that would have to free memory
    own.wall.reset();             // it may name them, too
    own.paging.clear();
    own.explain.clear();
    cut_others(own.verdict.finding.because);
    for (Finding& dissent : own.verdict.dissent) cut_others(dissent.because);
    if (own.verdict.end) own.verdict.end->pid = own.key.pid;
    if (own.verdict.suspect) own.verdict.suspect.reset();
    for (std::vector<Alert>* alerts : {&own.alerts, &own.suspicions})
      for (Alert& alert : *alerts) cut_others(alert.finding.because);
    out.series.push_back(std::move(own));
  }
  return out;
}

std::optional<ProcessInfo> process_of_client(const View& view, std::uint32_t pid, const std::string& pid_namespace,
                                             const NamespaceOf& namespace_of) {
  for (const SeriesView& s : view.series) {
    if (!s.process || s.ended || !s.key.host.empty()) continue;
    const ProcessInfo& process = *s.process;
    if (pid_namespace.empty() ? process.pid == pid
                              : process.ns_pid == pid && is_of(process, pid_namespace, namespace_of))
      return process;
  }
  return std::nullopt;
}

}  // namespace vramtrack::agent
