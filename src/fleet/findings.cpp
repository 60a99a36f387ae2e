#include "fleet/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/format.hpp"
#include "core/order.hpp"
#include "core/statistics.hpp"
#include "report/conclusion.hpp"

namespace vramtrack::fleet {
namespace {

/// A chance of one in a hundred, divided by the number of values compared (Bonferroni): in 99 of 100 fleets where no
/// value is shared beyond chance, none is reported.
constexpr double kChance = 0.01;

std::string gpu_name(const GpuVerdict& gpu) {
  const std::string number = gpu.device.index ? fmt::format("GPU {}", *gpu.device.index) : gpu.device.id;
  return gpu.device.host.empty() ? number : gpu.device.host + ' ' + number;
}

/// One run of one program on one GPU, which leaked or did not.
struct Stay {
  const GpuVerdict* gpu = nullptr;
  const Workload* workload = nullptr;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  std::optional<std::int64_t> raised_ms;  ///< when the first leak's alert was raised
  bool is_shared_leak = false;            ///< others used the GPU, too, so the owner of the leak is unknown
};

std::set<std::string> groups_of(const std::vector<const Workload*>& users) {
  std::set<std::string> groups;
  for (const Workload* user : users)
    if (std::string group = user->group(); !group.empty()) groups.insert(std::move(group));
  return groups;
}

/// "ml/a, ml/b" for all who share a GPU.
std::string group_of(const std::vector<const Workload*>& users) {
  std::string out;
  for (const std::string& group : groups_of(users)) out += (out.empty() ? "" : ", ") + group;
  return out;
}

}  // namespace

std::string work_name(const GpuVerdict& gpu, const std::vector<const Workload*>& users) {
  std::string group = group_of(users);
  return group.empty() ? gpu_name(gpu) : group;
}

namespace {

std::vector<Stay> stays_of(const Scan& scan) {
  std::vector<Stay> out;
  for (const MachineVerdict& machine : scan.machines)
    for (const GpuVerdict& gpu : machine.gpus)
      for (const Tenancy& tenancy : gpu.tenancies) {
        Stay stay{&gpu, &tenancy.workload, tenancy.first_ms, tenancy.last_ms, {}, false};
        for (const Alert& alert : gpu.alerts) {
          const std::int64_t raised_ms = ms_of(alert.raised);
          const std::vector<const Workload*> users = gpu.users_at(alert.raised);
          if (!shows_leak(alert) || std::find(users.begin(), users.end(), stay.workload) == users.end()) continue;
          stay.is_shared_leak |= groups_of(users).size() > 1;
          stay.raised_ms = std::min(stay.raised_ms.value_or(INT64_MAX), raised_ms);
        }
        out.push_back(stay);
      }
  return out;
}

/// A run: all stays of one job. Runs are counted, not stays, because the GPUs of one job leak together.
struct Run {
  std::string group;
  const Workload* workload = nullptr;
  std::set<std::string> nodes, leaking_nodes;
  std::int64_t first_ms = INT64_MAX;
  std::int64_t last_ms = INT64_MIN;
  std::int64_t raised_ms = INT64_MAX;
  [[nodiscard]] bool leaks() const { return !leaking_nodes.empty(); }
};

std::vector<Run> runs_of(const std::vector<Stay>& stays) {
  std::map<std::string, Run> runs;
  for (const Stay& stay : stays) {
    const std::string group = stay.workload->group();
    if (group.empty() || stay.is_shared_leak) continue;
    // Pods of one owner with another image are another run of it.
    Run& run = runs[group + '\0' + stay.workload->image + '\0' + stay.workload->job];
    run.group = group;
    run.workload = stay.workload;
    run.nodes.insert(stay.gpu->device.host);
    run.first_ms = std::min(run.first_ms, stay.first_ms);
    run.last_ms = std::max(run.last_ms, stay.last_ms);
    if (!stay.raised_ms) continue;
    run.leaking_nodes.insert(stay.gpu->device.host);
    run.raised_ms = std::min(run.raised_ms, *stay.raised_ms);
  }
  std::vector<Run> out;
  for (auto& [key, run] : runs) out.push_back(std::move(run));
  return out;
}

/// How long a healthy run must be to show the leak: as long as the slowest of the leaking runs took.
std::int64_t long_enough_ms(const std::vector<const Run*>& leaking) {
  std::int64_t slowest = 0;
  for (const Run* run : leaking) slowest = std::max(slowest, run->raised_ms - run->first_ms);
  return slowest;
}

std::string listed(const std::set<std::string>& names) {
  std::string out;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (count == 5) return fmt::format("{} and {} more", out, names.size() - 5);
    if (count++ > 0) out += ", ";
    out += name;
  }
  return out;
}

std::vector<std::string> list_of(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

using Property = std::pair<std::string_view, std::function<std::string(const Run&)>>;

const std::array<Property, 4>& properties() {
  static const std::array<Property, 4> all = {{{"image", [](const Run& r) { return r.workload->image; }},
                                               {"program", [](const Run& r) { return r.workload->program(); }},
                                               {"framework", [](const Run& r) { return r.workload->framework; }},
                                               {"driver", [](const Run& r) { return r.workload->driver; }}}};
  return all;
}

/// The values that leaking runs share beyond chance.
std::vector<SharedValue> shared_values(const std::vector<const Run*>& leaking, const std::vector<const Run*>& healthy) {
  std::vector<SharedValue> out;
  std::size_t looked_at = 0;
  for (const auto& [what, value_of] : properties()) {
    std::map<std::string, SharedValue> values;
    for (const Run* run : leaking)
      if (const std::string value = value_of(*run); !value.empty()) ++values[value].leaking;
    for (const Run* run : healthy)
      if (const auto known = values.find(value_of(*run)); known != values.end()) ++known->second.healthy;
    looked_at += values.size();
    for (auto& [value, shared] : values) {
      shared.what = what;
      shared.value = value;
      shared.leaking_of = leaking.size();
      shared.healthy_of = healthy.size();
      shared.p_value = fisher_exact_p(shared.leaking, shared.leaking_of, shared.healthy, shared.healthy_of);
      out.push_back(shared);
    }
  }
  std::erase_if(out, [&](const SharedValue& s) { return s.p_value * static_cast<double>(looked_at) > kChance; });
  order(out, [](const SharedValue& a, const SharedValue& b) { return a.p_value < b.p_value; });
  return out;
}

/// Finds runs of one image (or of one program) that leak on several nodes.
void find_signatures(const std::vector<Run>& runs, std::vector<FleetFinding>& out) {
  std::map<std::string, std::vector<const Run*>> by_signature;
  std::vector<const Run*> all_leaking;
  for (const Run& run : runs) {
    if (!run.leaks()) continue;
    all_leaking.push_back(&run);
    const std::string signature = run.workload->image.empty() ? run.workload->program() : run.workload->image;
    if (!signature.empty()) by_signature[signature].push_back(&run);
  }
  for (const auto& [signature, leaking] : by_signature) {
    std::set<std::string> nodes, jobs;
    for (const Run* run : leaking) {
      nodes.insert(run->leaking_nodes.begin(), run->leaking_nodes.end());
      jobs.insert(run->group);
    }
    if (nodes.size() < 2) continue;
    std::vector<const Run*> healthy;
    const std::int64_t enough_ms = long_enough_ms(leaking);
    for (const Run& run : runs)
      if (!run.leaks() && run.last_ms - run.first_ms >= enough_ms) healthy.push_back(&run);
    FleetFinding finding;
    finding.kind = FindingKind::signature;
    finding.program = signature;
    finding.nodes = list_of(nodes);
    finding.jobs = list_of(jobs);
    finding.shared = shared_values(leaking, healthy);
    finding.text = fmt::format("{} leaks on {} nodes ({}): this is one leak of the program, not of the nodes.",
                               signature, nodes.size(), listed(nodes));
    for (const SharedValue& s : finding.shared)
      if (s.value != signature)
        finding.text += fmt::format(" {} of {} runs that leak have the {} {}, and {} of {} healthy ones.", s.leaking,
                                    s.leaking_of, s.what, s.value, s.healthy, s.healthy_of);
    out.push_back(std::move(finding));
  }
}

/// Finds nodes that leak although the same program is healthy on others.
void find_nodes(const std::vector<Run>& runs, std::vector<FleetFinding>& out) {
  struct Suspicion {
    std::set<std::string> jobs, healthy_nodes, programs;
    double p_value = 1;
  };
  std::map<std::string, Suspicion> nodes;
  std::map<std::string, std::vector<const Run*>> programs;
  for (const Run& run : runs)
    programs[run.workload->program().empty() ? run.group : run.workload->program()].push_back(&run);
  for (const auto& [program, same] : programs) {
    std::vector<const Run*> leaking;
    for (const Run* run : same)
      if (run->leaks()) leaking.push_back(run);
    if (leaking.empty()) continue;
    const std::int64_t enough_ms = long_enough_ms(leaking);
    std::set<std::string> hit, healthy, jobs;
    for (const Run* run : same) {
      hit.insert(run->leaking_nodes.begin(), run->leaking_nodes.end());
      if (run->leaks() || run->last_ms - run->first_ms >= enough_ms)
        healthy.insert(run->nodes.begin(), run->nodes.end());
      if (run->leaks()) jobs.insert(run->group);
    }
    for (const std::string& node : hit) healthy.erase(node);
    if (hit.size() != 1 || healthy.empty()) continue;
    Suspicion& suspicion = nodes[*hit.begin()];
    suspicion.jobs.insert(jobs.begin(), jobs.end());
    suspicion.healthy_nodes.insert(healthy.begin(), healthy.end());
    suspicion.programs.insert(program);
    // If all nodes of the program were equally likely to be hit, this one would be with a chance of one divided by
    // their number, for each of its leaking runs.
    suspicion.p_value *= std::pow(1.0 / static_cast<double>(healthy.size() + 1), static_cast<double>(leaking.size()));
  }
  for (const auto& [node, suspicion] : nodes) {
    FleetFinding finding;
    finding.kind = FindingKind::node;
    finding.nodes = {node};
    finding.jobs = list_of(suspicion.jobs);
    finding.program = *suspicion.programs.begin();
    finding.p_value = suspicion.p_value;
    finding.text = fmt::format("{} leaks only on {}, and is healthy on {}. ", listed(suspicion.programs), node,
                               listed(suspicion.healthy_nodes));
    finding.text +=
        suspicion.p_value <= 0.05
            ? fmt::format(
                  "This points at the node: check its driver, its configuration and its GPUs (vramtrack doctor "
                  "--health); chance alone would produce this in {} of cases.",
                  format_percent(suspicion.p_value))
            : fmt::format(
                  "Check the node (vramtrack doctor --health), and what only this rank does: a leak on one of {} nodes "
                  "does not show which of the two is the cause.",
                  suspicion.healthy_nodes.size() + 1);
    out.push_back(std::move(finding));
  }
}

/// Finds programs whose runs have leaked since their image changed.
void find_versions(const std::vector<Run>& runs, std::vector<FleetFinding>& out) {
  std::map<std::string, std::vector<const Run*>> programs;
  for (const Run& run : runs)
    if (!run.workload->program().empty() && !run.workload->image.empty())
      programs[run.workload->program()].push_back(&run);
  for (auto& [program, same] : programs) {
    std::vector<const Run*> leaking;
    for (const Run* run : same)
      if (run->leaks()) leaking.push_back(run);
    if (leaking.empty()) continue;
    const Run* const first = *std::min_element(leaking.begin(), leaking.end(),
                                               [](const Run* a, const Run* b) { return a->first_ms < b->first_ms; });
    const std::string& since = first->workload->image;
    const std::int64_t enough_ms = long_enough_ms(leaking);
    const Run* last_healthy = nullptr;
    std::size_t with = 0, with_leaking = 0, without = 0, without_leaking = 0;
    for (const Run* run : same) {
      const bool is_known = run->leaks() || run->last_ms - run->first_ms >= enough_ms;
      if (!is_known) continue;
      if (run->workload->image == since) {
        ++with;
        if (run->leaks()) ++with_leaking;
        continue;
      }
      ++without;
      if (run->leaks()) ++without_leaking;
      if (!run->leaks() && run->first_ms < first->first_ms &&
          (last_healthy == nullptr || last_healthy->first_ms < run->first_ms))
        last_healthy = run;
    }
    if (last_healthy == nullptr) continue;
    FleetFinding finding;
    finding.kind = FindingKind::version;
    finding.program = program;
    finding.before = last_healthy->workload->image;
    finding.since = since;
    for (const Run* run : leaking) {
      finding.jobs.push_back(run->group);
      for (const std::string& node : run->leaking_nodes)
        if (std::find(finding.nodes.begin(), finding.nodes.end(), node) == finding.nodes.end())
          finding.nodes.push_back(node);
    }
    finding.p_value = fisher_exact_p(with_leaking, with_leaking + without_leaking, with - with_leaking,
                                     with + without - with_leaking - without_leaking);
    finding.text = fmt::format(
        "{} began to leak when its image changed from {} to {}: {} of {} runs of the new one leak, and {} of {} of the "
        "others. "
        "Compare the two versions.",
        program, finding.before, since, with_leaking, with, without_leaking, without);
    out.push_back(std::move(finding));
  }
}

LeakingJob& job_of(std::map<std::string, LeakingJob>& jobs, const LeakingGpu& leak) {
  const GpuVerdict& gpu = *leak.gpu;
  const std::string group = group_of(leak.users);
  LeakingJob& job = jobs[group.empty() ? gpu.device.host + '\0' + gpu.device.id : group];
  job.is_named = !group.empty();
  job.name = work_name(gpu, leak.users);
  if (groups_of(leak.users).size() == 1 && job.program.empty()) job.program = leak.users.front()->program();
  return job;
}

void add_unique(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::vector<LeakingJob> leaking_jobs(const Scan& scan, const std::vector<Stay>& stays) {
  std::map<std::string, LeakingJob> jobs;
  for (const MachineVerdict& machine : scan.machines)
    for (const GpuVerdict& gpu : machine.gpus) {
      if (!gpu.has_leaked() && !gpu.suspicion) continue;
      LeakingGpu leak;
      leak.gpu = &gpu;
      leak.is_suspected = gpu.leak() == nullptr && gpu.suspicion.has_value();
      leak.alert = leak.is_suspected ? &*gpu.suspicion : gpu.leak();
      for (const Alert& past : gpu.alerts)
        if (!leak.is_suspected && (leak.alert == nullptr || leak.alert->cleared) && past.finding.leak &&
            past.ended != AlertEnd::withdrawn)
          leak.alert = &past;
      leak.users = gpu.users_at(leak.alert->raised);
      LeakingJob& job = job_of(jobs, leak);
      job.leaks.push_back(leak);
      add_unique(job.leaking_nodes, gpu.device.host);
      const JobState state = leak.is_suspected       ? JobState::suspected
                             : gpu.leak() != nullptr ? JobState::leaks
                                                     : JobState::ended;
      job.state = std::min(job.state, state);
      if (state == JobState::ended) continue;
      job.growth_bytes_per_s += gpu.verdict.finding.growth_bytes_per_s.mid;
      const auto& oom = gpu.verdict.finding.oom_in_s;
      if (oom && (!job.oom_in_s || oom->mid < job.oom_in_s->mid)) job.oom_in_s = oom;
    }
  std::map<std::string, std::set<const GpuVerdict*>> members;
  for (const Stay& stay : stays) {
    // If several share a GPU, the leak belongs to all of them.
    const std::string group =
        stay.is_shared_leak ? group_of(stay.gpu->users_at(time_of(*stay.raised_ms))) : stay.workload->group();
    const auto job = group.empty() ? jobs.find(stay.gpu->device.host + '\0' + stay.gpu->device.id) : jobs.find(group);
    if (job == jobs.end()) continue;
    const bool is_new = members[job->first].insert(stay.gpu).second;
    add_unique(job->second.nodes, stay.gpu->device.host);
    if (stay.is_shared_leak && !is_new) continue;  // the GPU is lost only once
    job->second.gpu_hours += static_cast<double>(stay.last_ms - stay.first_ms) / 3.6e6;
  }
  std::vector<LeakingJob> out;
  for (auto& [key, job] : jobs) {
    if (job.nodes.empty()) job.nodes = job.leaking_nodes;
    job.gpus = std::max(members[key].size(), job.leaks.size());
    const auto begin = [](const LeakingGpu& l) { return l.alert->finding.onset.value_or(l.alert->raised); };
    order(job.leaks, [&](const LeakingGpu& a, const LeakingGpu& b) { return begin(a) < begin(b); });
    out.push_back(std::move(job));
  }
  order(out, [](const LeakingJob& a, const LeakingJob& b) {
    if (a.state != b.state) return a.state < b.state;
    const double never = std::numeric_limits<double>::infinity();
    const double a_end = a.oom_in_s ? a.oom_in_s->mid : never;
    const double b_end = b.oom_in_s ? b.oom_in_s->mid : never;
    return a_end != b_end ? a_end < b_end : a.growth_bytes_per_s > b.growth_bytes_per_s;
  });
  return out;
}

}  // namespace

std::string LeakingGpu::common(std::string Workload::*what) const {
  if (users.empty()) return {};
  const std::string& value = users.front()->*what;
  const bool is_common =
      std::all_of(users.begin(), users.end(), [&](const Workload* user) { return user->*what == value; });
  return is_common ? value : std::string();
}

std::string_view to_string(FindingKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"signature", "node", "version"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(JobState state) {
  constexpr std::array<std::string_view, 3> kNames = {"leaks", "suspected", "ended"};
  return kNames[static_cast<std::size_t>(state)];
}

FleetFindings find(const Scan& scan) {
  FleetFindings out;
  const std::vector<Stay> stays = stays_of(scan);
  const std::vector<Run> runs = runs_of(stays);
  out.jobs = leaking_jobs(scan, stays);
  find_versions(runs, out.findings);
  find_signatures(runs, out.findings);
  find_nodes(runs, out.findings);
  for (const MachineVerdict& machine : scan.machines) {
    out.gpus += machine.gpus.size();
    for (const GpuVerdict& gpu : machine.gpus) {
      if (!gpu.has_uuid) ++out.gpus_without_uuid;
      if (gpu.leak() != nullptr)
        ++out.leaking_gpus;
      else if (gpu.suspicion)
        ++out.suspected_gpus;
    }
  }
  for (const LeakingJob& job : out.jobs)
    if (job.state == JobState::leaks) out.gpu_hours_at_risk += job.gpu_hours;
  return out;
}

}  // namespace vramtrack::fleet
