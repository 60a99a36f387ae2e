// The lines of a scan for programs: docs/fleet.md describes them.
#include "core/json.hpp"

#include <algorithm>
#include <cmath>

#include "fleet/status.hpp"
#include "fleet/text.hpp"
#include "report/conclusion_words_json.hpp"
#include "report/fields_json.hpp"

namespace vramtrack::fleet {
namespace {

using json = Json;

double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

json interval(const std::optional<Interval>& value) {
  if (!value) return nullptr;
  return {{"low", rounded(value->low)}, {"mid", rounded(value->mid)}, {"high", rounded(value->high)}};
}

json leak_json(const LeakingGpu& leak) {
  const Finding& finding = leak.alert->finding;
  json out = {{"host", leak.gpu->device.host}, {"device", leak.gpu->device.id}};
  out["index"] = leak.gpu->device.index ? json(*leak.gpu->device.index) : json(nullptr);
  out["onset"] = finding.onset ? json(iso8601(*finding.onset)) : json(nullptr);
  out["raised"] = iso8601(leak.alert->raised);
  out["ended"] = leak.alert->cleared ? json(to_string(leak.alert->ended)) : json(nullptr);
  out["told"] = conclusion_words_json(alert_words(*leak.alert, kSecondsAndBytes));
  out["is_suspected"] = leak.is_suspected;
  out["pattern"] = to_string(finding.pattern);
  out["confidence"] = rounded(finding.confidence);
  out["growth_bytes_per_s"] =
      rounded(leak.alert->cleared == std::nullopt ? leak.gpu->verdict.finding.growth_bytes_per_s.mid
                                                  : finding.growth_bytes_per_s.mid);
  out["used_bytes"] = leak.gpu->used_bytes;
  out["capacity_bytes"] = leak.gpu->device.capacity_bytes ? json(*leak.gpu->device.capacity_bytes) : json(nullptr);
  if (!leak.users.empty()) {
    out["image"] = fields::text_or_null(leak.common(&Workload::image));
    out["driver"] = fields::text_or_null(leak.common(&Workload::driver));
    out["pod"] = fields::text_or_null(leak.common(&Workload::pod));
    out["pods"] = json::array();
    for (const Workload* user : leak.users)
      if (!user->pod.empty()) out["pods"].push_back(user->pod);
    out["user"] = fields::text_or_null(leak.common(&Workload::user));
  }
  return out;
}

json job_json(const LeakingJob& job, double usd_per_gpu_hour) {
  json out = {{"schema", "vramtrack.fleet_job.v1"}};
  out["job"] = job.is_named ? json(job.name) : json(nullptr);
  out["program"] = fields::text_or_null(job.program);
  out["state"] = to_string(job.state);
  out["gpus"] = job.gpus;
  out["nodes"] = job.nodes;
  out["leaking_nodes"] = job.leaking_nodes;
  out["growth_bytes_per_s"] = rounded(job.growth_bytes_per_s);
  out["oom_in_s"] = interval(job.oom_in_s);
  out["cache_ratio"] = job.cache_ratio ? json(rounded(*job.cache_ratio)) : json(nullptr);
  out["gpu_hours"] = rounded(job.gpu_hours);
  out["cost_usd"] = usd_per_gpu_hour > 0 ? json(rounded(job.gpu_hours * usd_per_gpu_hour)) : json(nullptr);
  out["leaks"] = json::array();
  for (const LeakingGpu& leak : job.leaks) out["leaks"].push_back(leak_json(leak));
  return out;
}

json finding_json(const FleetFinding& finding) {
  json out = {{"schema", "vramtrack.fleet_finding.v1"}, {"kind", to_string(finding.kind)}};
  out["program"] = fields::text_or_null(finding.program);
  out["nodes"] = finding.nodes;
  out["jobs"] = finding.jobs;
  out["before"] = fields::text_or_null(finding.before);
  out["since"] = fields::text_or_null(finding.since);
  out["p_value"] = finding.kind == FindingKind::signature ? json(nullptr) : json(finding.p_value);
  out["shared"] = json::array();
  for (const SharedValue& s : finding.shared)
    out["shared"].push_back({{"what", s.what},
                             {"value", s.value},
                             {"leaking", s.leaking},
                             {"leaking_of", s.leaking_of},
                             {"healthy", s.healthy},
                             {"healthy_of", s.healthy_of},
                             {"p_value", s.p_value}});
  out["text"] = finding.text;
  return out;
}

json scan_line(const Scan& scan, const FleetFindings& found, const ScanWords& words) {
  json out = {{"schema", "vramtrack.fleet_scan.v1"}, {"server", words.server}, {"read_by", words.path}};
  out["exporters"] = scan.exporters;
  out["machines"] = hosts_of(scan).size();
  out["gpus"] = found.gpus;
  out["gpus_without_uuid"] = found.gpus_without_uuid;
  out["leaking_gpus"] = found.leaking_gpus;
  out["suspected_gpus"] = found.suspected_gpus;
  out["samples"] = scan.samples;
  out["blank_values"] = scan.blank_values;
  out["unnamed_series"] = scan.unnamed_series;
  out["retried_requests"] = scan.retried_requests;
  out["unknown_metrics"] = json::array();
  for (const UnknownMetric& metric : scan.unknown)
    out["unknown_metrics"].push_back({{"name", metric.name}, {"exporter", metric.exporter_lines}});
  out["is_complete"] = scan.unread.empty() && !scan.was_cancelled;
  out["unread"] = json::array();
  for (const Unread& unread : scan.unread) {
    out["unread"].push_back({{"hosts", unread.hosts}, {"why", unread.why}});
    if (!unread.server.empty()) out["unread"].back()["server"] = unread.server;
  }
  return out;
}

}  // namespace

std::string scan_json(const Scan& scan, const FleetFindings& found, const ScanWords& words) {
  std::string out;
  for (const MachineVerdict& machine : scan.machines) out += machine.json;
  for (const LeakingJob& job : found.jobs) out += json_text(job_json(job, words.usd_per_gpu_hour)) + '\n';
  for (const FleetFinding& finding : found.findings) out += json_text(finding_json(finding)) + '\n';
  return out + json_text(scan_line(scan, found, words)) + '\n';
}

std::string fleet_json(const Scan& scan, const FleetFindings& found, const ScanWords& words, const PassStatus& status) {
  json out = scan_line(scan, found, words);
  out["schema"] = "vramtrack.fleet.v1";
  out["time"] = iso8601(status.time);
  out["took_s"] = rounded(status.took_s);
  out["every_s"] = rounded(status.every_s);
  out["passes"] = status.passes;
  out["failed_passes"] = status.failed_passes;
  out["trouble"] = fields::text_or_null(status.trouble);
  out["gpu_hours_at_risk"] = rounded(found.gpu_hours_at_risk);
  out["cost_usd"] =
      words.usd_per_gpu_hour > 0 ? json(rounded(found.gpu_hours_at_risk * words.usd_per_gpu_hour)) : json(nullptr);
  out["jobs"] = json::array();
  for (const LeakingJob& job : found.jobs) out["jobs"].push_back(job_json(job, words.usd_per_gpu_hour));
  out["findings"] = json::array();
  for (const FleetFinding& finding : found.findings) out["findings"].push_back(finding_json(finding));
  return json_text(out) + '\n';
}

}  // namespace vramtrack::fleet
