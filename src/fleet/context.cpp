#include "fleet/context.hpp"

#include <algorithm>
#include <set>

namespace vramtrack::fleet {
namespace {

/// The names in one matcher: VictoriaMetrics accepts a query of 16 KiB.
constexpr std::size_t kMostCharacters = 10'000;
/// Two or three scrapes; the last one counts.
constexpr std::int64_t kNowMs = 150'000;

bool lacks_image(const Workload& workload) {
  return workload.image.empty() && !workload.pod.empty();
}

}  // namespace

void Images::complete(const Reader& reader, Scan& scan, std::int64_t start_ms, std::int64_t end_ms) {
  if (mapping_.context().pods.empty()) return;
  std::vector<Pod> unknown;
  std::size_t characters = 0;
  const auto ask_all = [&] {
    if (!unknown.empty()) ask(reader, unknown, start_ms, end_ms);
    unknown.clear();
    characters = 0;
  };
  const auto each_workload = [&scan](auto visit) {
    for (MachineVerdict& machine : scan.machines)
      for (GpuVerdict& gpu : machine.gpus)
        for (Tenancy& tenancy : gpu.tenancies)
          if (lacks_image(tenancy.workload)) visit(tenancy.workload);
  };
  each_workload([&](const Workload& workload) {
    if (!images_.try_emplace({workload.name_space, workload.pod}).second) return;
    unknown.emplace_back(workload.name_space, workload.pod);
    characters += workload.pod.size() + 1;
    if (characters >= kMostCharacters) ask_all();
  });
  ask_all();
  each_workload([&](Workload& workload) {
    const auto& containers = images_.at({workload.name_space, workload.pod});
    const auto known = containers.find(workload.container);
    if (known != containers.end())
      workload.image = known->second;
    else if (workload.container.empty() && containers.size() == 1)
      workload.image = containers.begin()->second;
  });
}

void Images::forget_unknown() {
  std::erase_if(images_, [](const auto& pod) { return pod.second.empty(); });
}

void Images::ask(const Reader& reader, const std::vector<Pod>& pods, std::int64_t start_ms, std::int64_t end_ms) {
  std::vector<std::string> names;
  for (const Pod& pod : pods) names.push_back(pod.second);
  Query query;
  query.matchers = {{"__name__", alternation_of(mapping_.context().pods), true}, {"pod", alternation_of(names), true}};
  query.start_ms = start_ms;
  query.end_ms = end_ms;
  const auto series = reader.series(query);
  if (!series) return;
  const WorkloadLabels& labels = mapping_.workload();
  for (const Labels& one : *series) {
    // Uses `pod` rather than exported_pod: the pod that the metric is about, not the one that exports it.
    const Pod pod{value_of(one, "namespace"), value_of(one, "pod")};
    const std::string image(first_of(one, labels.image));
    const auto wanted = images_.find(pod);
    if (wanted != images_.end() && !image.empty()) wanted->second[std::string(value_of(one, "container"))] = image;
  }
}

void add_caches(const Reader& reader, const Mapping& mapping, std::int64_t end_ms, FleetFindings& found) {
  const ContextMetrics& context = mapping.context();
  const auto is_wanted = [](const LeakingJob& job) { return job.state != JobState::ended; };
  if (context.cache.empty() || std::none_of(found.jobs.begin(), found.jobs.end(), is_wanted)) return;
  std::map<std::string, double> by_pod, by_host;
  const auto keep_most = [](std::map<std::string, double>& of, const std::string& name, double ratio) {
    if (!name.empty()) of[name] = std::max(of[name], ratio);
  };
  const Query query{{{"__name__", alternation_of(context.cache), true}}, end_ms - kNowMs, end_ms};
  // Errors are ignored: a cache is only a hint.
  (void)reader.read(query, [&](const Labels& labels, const std::vector<Point>& points) {
    if (points.empty() || !(points.back().value >= 0 && points.back().value <= 1)) return;
    keep_most(by_pod, std::string(first_of(labels, mapping.workload().pod)), points.back().value);
    keep_most(by_host, host_of(first_of(labels, context.cache_host_labels)), points.back().value);
  });
  for (LeakingJob& job : found.jobs) {
    if (!is_wanted(job)) continue;
    for (const LeakingGpu& leak : job.leaks) {
      const auto take = [&job](const std::map<std::string, double>& of, const std::string& name) {
        const auto known = of.find(name);
        if (!name.empty() && known != of.end()) job.cache_ratio = std::max(job.cache_ratio.value_or(0), known->second);
        return !name.empty() && known != of.end();
      };
      bool is_known = false;
      for (const Workload* user : leak.users) is_known |= take(by_pod, user->pod);
      if (!is_known) take(by_host, leak.gpu->device.host);
    }
  }
}

}  // namespace vramtrack::fleet
