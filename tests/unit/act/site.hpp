// A machine on which every action can be carried out on a real process: with a cgroup, a probe run, Slurm and an API
// server made of files, so that the effects outlive an agent that is killed.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "act/kubernetes.hpp"
#include "act/runner.hpp"
#include "subjects.hpp"
#include "victim.hpp"

namespace vramtrack::act {

/// The sampler's view of the victim at that time. `subject`: the subject that represents it.
inline Observation seen_of(const Victim& victim, const Subject& subject, double time_s) {
  Observation o = seen(time_s, {subject});
  if (victim.state() == '?') {
    o.subjects.clear();
    o.processes.front().ended = true;
    o.devices.front().used_bytes = 1e9;
    o.devices.front().by_processes_bytes = 0;
  }
  return o;
}

class Site {
 public:
  /// `steps`: those of the only policy, which names the victim's job and container. Files are kept in `in`.
  Site(const Victim& of, std::string in, std::string steps)
      : victim(of), folder(std::move(in)), steps_(std::move(steps)) {
    for (const char* file : {"stat", "status", "cmdline", "comm", "environ"}) {
      std::ostringstream text;
      text << std::ifstream(fmt::format("/proc/{}/{}", victim.pid(), file)).rdbuf();
      put(fmt::format("proc/{}/{}", victim.pid(), file), text.str());
    }
    put("proc/" + std::to_string(victim.pid()) + "/cgroup", "0::/batch/job\n");
    put("cgroup/cgroup.controllers", "cpu\n");
    put("cgroup/batch/job/cgroup.procs", std::to_string(victim.pid()) + "\n");
    put("cgroup/batch/job/cpu.max", kQuota);
    put("limit", "0");
    put("node", "idle|none");
  }

  const Victim& victim;
  const std::string folder;

  [[nodiscard]] Subject subject() const {
    Subject s = victim.subject();
    s.job = "1234";
    s.container = "c-1";
    s.pod = "pod-1";
    return s;
  }

  /// The sampler's view at that time.
  [[nodiscard]] Observation seen(double time_s) const { return seen_of(victim, subject(), time_s); }

  [[nodiscard]] RunnerOptions options() const {
    RunnerOptions out;
    out.policies = policies_of(fmt::format(
        "[[policy]]\nname = \"a\"\nwhen = {{ user = \"{}\", job = \"1234\", container = \"c-1\" }}\nsteps = [{}]\n",
        victim.subject().user, steps_));
    out.config = acting();
    out.config.max_acts_per_hour = 1000;
    out.audit_path = folder + "/store.db.acts.jsonl";
    out.off_file = folder + "/off";
    out.boot_id = "boot";
    out.own_user = "nobody-else";
    out.now = [] { return at(0); };
    out.tools.proc_root = folder + "/proc";
    out.tools.cgroup_root = folder + "/cgroup";
    out.tools.node = "node1";
    out.tools.run = [this](const std::vector<std::string>& argv, double) { return run(argv); };
    out.tools.ask_run = [this](std::uint32_t, const std::string& line) -> Result<std::string> {
      if (line != "status") put("limit", line.substr(line.find(' ') + 1));
      return "ok limit=" + get("limit");
    };
    out.tools.kubernetes.ask = [this](const std::string& method, const std::string& path) {
      KubernetesAnswer answer;
      answer.status = method == "POST" ? 201 : 200;
      answer.body = method == "GET" ? asked(path) : "{}";
      if (method == "PATCH") append("patches", path.ends_with("/status") ? "s" : "n");
      if (method != "GET") append("ran", method + ' ' + path + '\n');
      return Result<KubernetesAnswer>(answer);
    };
    return out;
  }

  /// For RunnerOptions::at_point: the seconds are not real, so this waits until it handles SIGTERM before SIGKILL.
  void before_kill(std::string_view point, const Order& order) const {
    if (point == "intent" && order.action == "kill" && steps_.find("terminate") != std::string::npos)
      victim.handles_term();
  }

  /// How often a program was run, or a request sent, with this beginning.
  [[nodiscard]] int ran(const std::string& words) const {
    std::istringstream lines(get("ran"));
    int count = 0;
    for (std::string line; std::getline(lines, line);) count += line.starts_with(words) ? 1 : 0;
    return count;
  }

  /// The changes to the process and the node that have not been undone; empty: none.
  [[nodiscard]] std::string left() const {
    std::string out;
    if (get("cgroup/batch/job/cpu.max") != kQuota) out += "throttled ";
    if (get("limit") != "0") out += "limited ";
    if (!get("node").starts_with("idle")) out += "drained ";
    if (is_cordoned()) out += "cordoned ";
    return out;
  }

  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder + '/' + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::string get(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder + '/' + name).rdbuf();
    return text.str();
  }

 private:
  /// As long as the quota that throttle writes, because these files are not truncated.
  static constexpr const char* kQuota = "80000 100000";

  void append(const std::string& name, const std::string& text) const {
    std::ofstream(folder + '/' + name, std::ios::app) << text;
  }

  /// Runs Slurm's programs, and any other.
  Result<std::string> run(const std::vector<std::string>& argv) const {
    const std::string line = fmt::format("{}", fmt::join(argv, " "));
    append("ran", line + '\n');
    const std::string user = victim.subject().user;
    const std::string job = "|N/A|RUNNING|" + user + "|0|node1|(null)\n";
    if (line.find("State=DRAIN") != std::string::npos) put("node", "drained|" + line.substr(line.find("Reason=") + 7));
    if (line.find("State=RESUME") != std::string::npos) put("node", "idle|none");
    if (line.starts_with("sinfo")) return get("node");
    if (line.ends_with("-o %T")) return "PENDING";
    if (line.starts_with("squeue -h -t RUNNING")) return "gpu|77|77" + job;
    return "1234|1234" + job;
  }

  /// An uncordoning contains the node at its end, after the condition of a cordoning and its own.
  [[nodiscard]] bool is_cordoned() const {
    bool is_on = false;
    const std::string patches = get("patches");
    for (std::size_t i = 0; i < patches.size(); ++i)
      if (patches[i] == 'n') is_on = i < 2 || patches.substr(i - 2, 2) != "ss";
    return is_on;
  }

  [[nodiscard]] std::string asked(const std::string& path) const {
    if (path.find("/pods") != std::string::npos)
      return R"({"items": [{"metadata": {"uid": "pod-1", "name": "train", "namespace": "ml",
                 "ownerReferences": [{"kind": "Job", "controller": true}]},
                 "status": {"containerStatuses": [{"name": "c", "containerID": "containerd://c-1"}]}}]})";
    std::string by;
    const auto entries = read_audit(folder + "/store.db.acts.jsonl");
    if (is_cordoned() && entries)
      for (const AuditEntry& e : *entries)
        if (e.action == "cordon" && e.event == "intent") by = e.undo.substr(e.undo.find('|') + 1);
    return fmt::format(R"({{"metadata": {{"resourceVersion": "1", "annotations": {{"vramtrack.io/cordoned-by": "{}"}}}},
                            "spec": {{"unschedulable": {}}}}})",
                       by, is_cordoned());
  }

  std::string steps_;
};

}  // namespace vramtrack::act
