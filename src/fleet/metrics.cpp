#include <algorithm>
#include <set>

#include "core/pod_name.hpp"
#include "fleet/status.hpp"
#include "report/metric_family.hpp"

namespace vramtrack::fleet {
namespace {

using metrics::Families;
using metrics::Family;
using metrics::Labels;

double seconds_of(Timestamp time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// "x-0,y-0" for those who share a GPU. All are in one series, because rules join it to others by the GPU.
template <class What>
std::string all_of(const std::vector<const Workload*>& users, What what) {
  std::set<std::string> values;
  for (const Workload* user : users)
    if (const std::string value = what(*user); !value.empty()) values.insert(value);
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ",") + value;
  return out;
}

/// The labels of the GPU and of those who used it when its leak began. They do not change during the leak, so alerts on
/// it stay the same, too.
Labels labels_of(const GpuVerdict& gpu, const Alert& leak) {
  const std::vector<const Workload*> users = gpu.users_at(leak.raised);
  return {{"UUID", gpu.device.id},
          {"gpu", gpu.device.index ? std::to_string(*gpu.device.index) : std::string()},
          {"Hostname", gpu.device.host},
          {"user", all_of(users, [](const Workload& w) { return w.user; })},
          {"work", work_name(gpu, users)},
          {"slurm_job_id", all_of(users, [](const Workload& w) { return w.job; })},
          {"namespace", all_of(users, [](const Workload& w) { return w.name_space; })},
          {"pod", all_of(users, [](const Workload& w) { return w.pod; })},
          {"container", all_of(users, [](const Workload& w) { return w.container; })},
          {"deployment", all_of(users, [](const Workload& w) { return owner_of_pod(w.pod); })},
          {"image", all_of(users, [](const Workload& w) { return w.image; })}};
}

void add_verdicts(Families& out, const Scan& scan) {
  Family verdict(out, "vramtrack_verdict", "1 while the device leaks with this pattern.");
  Family severity(out, "vramtrack_severity", "0 ok, 1 watch, 2 warning, 3 critical.");
  Family confidence(out, "vramtrack_confidence_ratio", "Probability that the device leaks, 0 to 1.");
  Family growth(out, "vramtrack_growth_bytes_per_second", "Growth of the used memory: median of the estimate.");
  Family eta(out, "vramtrack_oom_eta_seconds", "Time until memory runs out: median of the estimate.");
  Family low(out, "vramtrack_oom_eta_low_seconds", "Time until memory runs out: 10th percentile.");
  Family high(out, "vramtrack_oom_eta_high_seconds", "Time until memory runs out: 90th percentile.");
  Family used(out, "vramtrack_fleet_leaking_used_bytes", "Memory in use on a device that leaks.");
  Family paged(
      out, "vramtrack_device_leak_paged",
      "1 while an alert about a leak on the device is active; 0 while it leaks but nobody has been notified yet.");
  for (const MachineVerdict& machine : scan.machines)
    for (const GpuVerdict& gpu : machine.gpus) {
      const Alert* leak = gpu.leak();
      if (leak == nullptr || gpu.is_by_agent) continue;
      const Finding& finding = gpu.verdict.finding;
      const Labels device = labels_of(gpu, *leak);
      const Labels detector = {{"detector", finding.detector}};
      verdict.add(1.0, device,
                  {{"detector", finding.detector}, {"pattern", std::string(to_string(leak->finding.pattern))}});
      severity.add(static_cast<double>(gpu.verdict.severity), device, detector);
      confidence.add(finding.confidence, device, detector);
      growth.add(finding.growth_bytes_per_s.mid, device, detector);
      if (finding.oom_in_s) {
        eta.add(finding.oom_in_s->mid, device, detector);
        low.add(finding.oom_in_s->low, device, detector);
        high.add(finding.oom_in_s->high, device, detector);
      }
      used.add(gpu.used_bytes, device);
      paged.add(gpu.is_paged() ? 1.0 : 0.0, device, detector);
    }
}

}  // namespace

std::string fleet_metrics(const Scan& scan, const FleetFindings& found, const PassStatus& status) {
  Families out;
  add_verdicts(out, scan);
  const auto one = [&out](const char* name, const char* help, double value,
                          prometheus::MetricType type = prometheus::MetricType::Gauge) {
    Family(out, name, help, type).add(value, {});
  };
  std::size_t unread = 0;
  for (const Unread& part : scan.unread) unread += std::max<std::size_t>(part.hosts.size(), 1);
  one("vramtrack_fleet_machines", "Machines whose GPUs are judged.", static_cast<double>(hosts_of(scan).size()));
  one("vramtrack_fleet_gpus", "GPUs that are judged.", static_cast<double>(found.gpus));
  one("vramtrack_fleet_leaking_gpus", "GPUs that leak now.", static_cast<double>(found.leaking_gpus));
  one("vramtrack_fleet_suspected_gpus", "GPUs with a suspected leak, about which no alert is active.",
      static_cast<double>(found.suspected_gpus));
  one("vramtrack_fleet_leaking_jobs", "Jobs with at least one GPU that leaks now.",
      static_cast<double>(std::count_if(found.jobs.begin(), found.jobs.end(),
                                        [](const LeakingJob& job) { return job.state == JobState::leaks; })));
  one("vramtrack_fleet_at_risk_gpu_seconds",
      "Upper bound on the work that a crash of the leaking jobs would lose, in GPU seconds.",
      found.gpu_hours_at_risk * 3600);
  one("vramtrack_fleet_unread_machines", "Machines that the last pass could not read.", static_cast<double>(unread));
  one("vramtrack_fleet_pass_timestamp_seconds", "When the last pass began.", seconds_of(status.time));
  one("vramtrack_fleet_pass_duration_seconds", "How long the last pass took.", status.took_s);
  one("vramtrack_fleet_pass_interval_seconds", "Time between the starts of two passes, as configured.", status.every_s);
  one("vramtrack_fleet_passes_total", "Passes so far.", static_cast<double>(status.passes), metrics::kCounter);
  one("vramtrack_fleet_failed_passes_total", "Passes that could not query the server.",
      static_cast<double>(status.failed_passes), metrics::kCounter);
  one("vramtrack_fleet_samples_total", "Samples that were read.", static_cast<double>(status.samples),
      metrics::kCounter);
  return metrics::text_of(std::move(out));
}

}  // namespace vramtrack::fleet
