#include "report/metrics.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/format.hpp"
#include "core/incident.hpp"
#include "core/pod_name.hpp"
#include "report/conclusion_words.hpp"
#include "report/health.hpp"
#include "report/metric_family.hpp"

namespace vramtrack {
namespace {

using metrics::Families;
using metrics::Family;
using metrics::Labels;

constexpr auto kCounter = metrics::kCounter;
constexpr std::size_t kContainerId = 64;  ///< hex digits; LXC's containers, which are machines, have names

/// A device and the live processes on it.
struct Device {
  const SeriesView* used = nullptr;
  const SeriesView* reserved = nullptr;
  const SeriesView* unattributed = nullptr;
  std::vector<const SeriesView*> processes;
  std::vector<const SeriesView*> host_series;  ///< of these processes
  std::string host;                            ///< as in SeriesKey::host
  Labels labels;

  [[nodiscard]] const std::string& number() const { return labels[1].second; }     ///< empty: unknown
  [[nodiscard]] const std::string& host_name() const { return labels[2].second; }  ///< as people know it
};

std::vector<Device> devices_of(const View& view, const std::string& host) {
  std::vector<Device> devices;
  const auto of = [&](const SeriesView& s) -> Device& {
    for (Device& d : devices)
      if (d.labels.front().second == s.key.device_id && d.host == s.key.host) return d;
    Device d;
    d.host = s.key.host;
    d.labels = {{"UUID", s.key.device_id},
                {"gpu", s.device.index ? std::to_string(*s.device.index) : std::string()},
                {"Hostname", s.key.host.empty() ? host : s.key.host}};
    devices.push_back(std::move(d));
    return devices.back();
  };
  for (const SeriesView& s : view.series) {
    if (s.key.metric == Metric::device_used) of(s).used = &s;
    if (s.key.metric == Metric::device_reserved) of(s).reserved = &s;
    if (s.key.metric == Metric::device_unattributed) of(s).unattributed = &s;
    if (s.key.metric == Metric::process_used && !s.ended) of(s).processes.push_back(&s);
    if (is_of_host(s.key.metric) && !s.ended) of(s).host_series.push_back(&s);
  }
  return devices;
}

void add_memory(Families& out, const std::vector<Device>& devices) {
  Family info(out, "vramtrack_device_info", "The device's name and location as labels; always 1.");
  Family up(out, "vramtrack_device_up", "1 while the driver answers for the device.");
  Family used(out, "vramtrack_device_memory_used_bytes", "Memory in use on the device in total.");
  Family peak(out, "vramtrack_device_memory_peak_bytes", "Maximum memory in use since the agent started.");
  Family total(out, "vramtrack_device_memory_total_bytes", "Memory capacity of the device, if the driver reports it.");
  Family reserved(out, "vramtrack_device_memory_reserved_bytes", "Memory that the driver reserves for itself.");
  Family host_memory(out, "vramtrack_device_shares_host_memory",
                     "1 if the device has no memory of its own but shares the host's, else 0.");
  Family busy(out, "vramtrack_device_utilisation_ratio",
              "Share of time in which a kernel ran, 0 to 1, if the driver reports it.");
  Family memory_busy(out, "vramtrack_device_memory_utilisation_ratio",
                     "Share of time in which memory was read or written, 0 to 1, if the driver reports it.");
  Family power(out, "vramtrack_gpu_power_watts", "Power that the board draws, if the driver reports it.");
  Family power_limit(out, "vramtrack_gpu_power_limit_watts", "Power limit in force, if the driver reports it.");
  Family clock(out, "vramtrack_gpu_sm_clock_hertz", "Clock of the multiprocessors now, if the driver reports it.");
  Family fan(out, "vramtrack_gpu_fan_ratio", "Fan speed as a share of full speed, if the GPU has a fan.");
  Family count(out, "vramtrack_device_processes", "Number of visible processes that hold memory on the device.");
  Family held(out, "vramtrack_device_processes_memory_bytes",
              "Device memory that all visible processes hold together.");
  Family rest(out, "vramtrack_device_memory_unattributed_bytes",
              "Memory in use on the device that no visible process holds, where its processes are known.");
  Family unreleased(out, "vramtrack_device_memory_unreleased_bytes",
                    "Memory still in use that was held by processes that have ended; 0 if all of it was released.");
  Family headroom(out, "vramtrack_device_memory_headroom_bytes",
                  "Lowest free memory if any one process reached its highest known use, in "
                  "this run or in earlier ones; negative: this much is missing.");
  for (const Device& d : devices) {
    std::uint64_t sum = 0;
    for (const SeriesView* p : d.processes) sum += p->used_bytes;
    count.add(static_cast<std::uint64_t>(d.processes.size()), d.labels);
    held.add(sum, d.labels);
    if (d.reserved != nullptr) reserved.add(d.reserved->used_bytes, d.labels);
    if (d.used == nullptr) continue;
    const DeviceInfo& device = d.used->device;
    info.add(1.0, d.labels, {{"name", device.name}, {"pci_bus_id", device.pci_bus_id}, {"parent", device.parent_id}});
    up.add(d.used->paused ? 0.0 : 1.0, d.labels);
    if (device.capacity_bytes) total.add(*device.capacity_bytes, d.labels);
    host_memory.add(device.shares_host_memory ? 1.0 : 0.0, d.labels);
    peak.add(d.used->peak_bytes, d.labels);
    if (d.used->paused) continue;  // its last figures are out of date: omit them
    if (d.unattributed != nullptr) rest.add(d.unattributed->used_bytes, d.labels);
    if (d.unattributed != nullptr) unreleased.add(d.unattributed->unreleased_bytes, d.labels);
    used.add(d.used->used_bytes, d.labels);
    if (d.used->headroom) headroom.add(static_cast<double>(d.used->headroom->left_bytes), d.labels);
    if (d.used->utilisation_ratio) busy.add(*d.used->utilisation_ratio, d.labels);
    const DeviceGauges& g = d.used->gauges;
    if (g.memory_utilisation_ratio) memory_busy.add(*g.memory_utilisation_ratio, d.labels);
    if (g.power_watts) power.add(*g.power_watts, d.labels);
    if (g.power_limit_watts) power_limit.add(*g.power_limit_watts, d.labels);
    if (g.sm_clock_hertz) clock.add(*g.sm_clock_hertz, d.labels);
    if (g.fan_ratio) fan.add(*g.fan_ratio, d.labels);
  }
}

/// For whole GPUs only: a MIG instance has no temperature of its own.
void add_health(Families& out, const std::vector<Device>& devices, Timestamp now) {
  Family temperature(out, "vramtrack_gpu_temperature_celsius", "Temperature of the GPU, if the driver reports it.");
  Family ecc_on(out, "vramtrack_gpu_ecc_enabled", "1 while ECC is on: memory errors are detected and corrected.");
  Family ecc(out, "vramtrack_gpu_ecc_errors_total", "Memory errors since the driver was loaded.", kCounter);
  Family ecc_life(out, "vramtrack_gpu_ecc_lifetime_errors_total", "Memory errors over the lifetime of the board.",
                  kCounter);
  Family remapped(out, "vramtrack_gpu_remapped_rows", "Memory rows that were replaced by spare ones.");
  Family pending(out, "vramtrack_gpu_memory_repair_pending",
                 "1 while defective memory rows wait for a reset to be replaced.");
  Family failed(out, "vramtrack_gpu_memory_repair_failed", "1 if a defective memory row could not be replaced.");
  Family throttled(out, "vramtrack_gpu_throttled", "1 while the clocks are throttled for this reason, else 0.");
  Family xid(out, "vramtrack_gpu_xid_last", "Code of the last XID error since the agent started; absent without one.");
  Family xid_time(out, "vramtrack_gpu_xid_last_timestamp_seconds", "Time of the last XID error.");
  Family condition(out, "vramtrack_gpu_health", "0 healthy, 1 degraded, 2 failing; absent where nothing is known.");
  const auto count = [](Family& family, const Device& d, const EccErrors& errors) {
    if (errors.corrected) family.add(*errors.corrected, d.labels, {{"kind", "corrected"}});
    if (errors.uncorrected) family.add(*errors.uncorrected, d.labels, {{"kind", "uncorrected"}});
  };
  const auto flag = [](Family& family, const Device& d, std::optional<bool> value) {
    if (value) family.add(*value ? 1.0 : 0.0, d.labels);
  };
  for (const Device& d : devices) {
    if (d.used == nullptr) continue;
    if (const auto& last = d.used->last_xid) {
      xid.add(last->code, d.labels);
      xid_time.add(static_cast<double>(last->time.time_since_epoch().count()) * 1e-9, d.labels);
    }
    const Condition judged = judge_health(*d.used, now).condition;
    if (judged != Condition::unknown)
      condition.add(static_cast<double>(judged) - static_cast<double>(Condition::healthy), d.labels);
    std::optional<double> celsius = d.used->gauges.temperature_celsius;
    if (!celsius && d.used->health) celsius = d.used->health->temperature_celsius;
    if (celsius && !d.used->paused) temperature.add(*celsius, d.labels);
    if (!d.used->health) continue;
    const DeviceHealth& h = *d.used->health;
    flag(ecc_on, d, h.ecc_enabled);
    count(ecc, d, h.ecc_since_load);
    count(ecc_life, d, h.ecc_lifetime);
    if (h.remapped_rows) remapped.add(*h.remapped_rows, d.labels);
    flag(pending, d, h.repair_pending);
    flag(failed, d, h.repair_failed);
    // Idleness does not need attention.
    for (std::size_t i = 0; h.throttle && i < kThrottleNames.size(); ++i)
      if (const auto reason = static_cast<Throttle>(i); reason != Throttle::idle)
        throttled.add(h.throttle->has(reason) ? 1.0 : 0.0, d.labels, {{"reason", std::string(kThrottleNames[i])}});
  }
}

/// The work that the process is a part of: a job, a pod, a container, else what was started on its host.
std::string work_of_process(const ProcessKey& key, const ProcessInfo& who, const PodName& name,
                            const std::string& host_name, const MetricsOptions& options) {
  if (std::string work = work_of(who.slurm_job.substr(0, who.slurm_job.find('.')), name.space, name.pod); !work.empty())
    return work;
  if (!who.pod.empty()) return "pod " + who.pod;
  if (who.container.size() == kContainerId) return host_name + " container " + who.container.substr(0, 12);
  std::string launch = options.launch && key.host.empty() ? options.launch(key) : std::string();
  if (launch.empty()) launch = who.name + (who.name.empty() ? "pid " : " pid ") + std::to_string(key.pid);
  return host_name + ' ' + launch;
}

/// The owner of a process's work: the same labels on everything about one process. Never the command line: a client
/// that may scrape is not necessarily allowed to read it.
Labels labels_of_process(const ProcessKey& key, const ProcessInfo& who, const std::string& framework,
                         const std::string& host_name, const MetricsOptions& options) {
  PodName name;
  if (!who.pod.empty() && options.pod_name) name = options.pod_name(who.pod, who.container);
  // A label with the step in it would split a job into several series.
  const std::size_t dot = std::min(who.slurm_job.find('.'), who.slurm_job.size());
  return {{"pid", std::to_string(key.pid)},
          {"comm", who.name},
          {"framework", framework},
          {"user", who.user},
          {"work", work_of_process(key, who, name, host_name, options)},
          {"slurm_job_id", who.slurm_job.substr(0, dot)},
          {"slurm_step_id", who.slurm_job.substr(std::min(dot + 1, who.slurm_job.size()))},
          {"namespace", name.space},
          {"pod", name.pod},
          {"container", name.container},
          {"deployment", owner_of_pod(name.pod)},
          {"pod_uid", who.pod},
          {"container_id", who.container}};
}

Labels labels_of_process(const Device& d, const SeriesView& process, const MetricsOptions& options) {
  const ProcessInfo who = process.process.value_or(ProcessInfo{});
  return labels_of_process(process_key(process.key), who, who.framework, d.host_name(), options);
}

/// REQUIRES: d.used.
Labels labels_of_finding(const Device& d) {
  Labels labels = d.labels;
  labels.emplace_back("detector", d.used->verdict.finding.detector);
  return labels;
}

/// The labels of the process that leaks; empty if none is visible.
Labels labels_of_suspect(const Device& d, const MetricsOptions& options) {
  const Verdict& v = d.used->verdict;
  if (!v.finding.leak || !v.suspect || v.suspect->pid == 0) return {};
  ProcessInfo who;
  for (const SeriesView* p : d.processes)
    if (p->process && p->key.pid == v.suspect->pid && p->key.pid_start_ticks == v.suspect->pid_start_ticks)
      who = *p->process;
  return labels_of_process({v.suspect->pid, v.suspect->pid_start_ticks, d.host}, who, v.framework, d.host_name(),
                           options);
}

/// The process that leaks; the GPU if no visible process does.
std::string work_of_leak(const Device& d, const Labels& suspect) {
  for (const auto& [name, value] : suspect)
    if (name == "work") return value;
  return d.host_name() + (d.number().empty() ? ' ' + d.labels.front().second : " GPU " + d.number());
}

/// The conclusion about a device as a whole.
void add_verdicts(Families& out, const View& view, const std::vector<Device>& devices, const MetricsOptions& options) {
  Family verdict(out, "vramtrack_verdict", "1 while the device leaks with this pattern, else 0.");
  Family words(out, "vramtrack_verdict_info", "The verdict in words, and its tone, as labels; always 1.");
  Family severity(out, "vramtrack_severity", "0 ok, 1 watch, 2 warning, 3 critical.");
  Family slow(out, "vramtrack_device_slow_growth",
              "1 while memory use grows so slowly that memory lasts longer than horizon-days; no alert is raised.");
  Family suspected(out, "vramtrack_device_leak_suspected",
                   "1 while a leak of the device is suspected but not confirmed; no notification is sent for it.");
  Family paged(out, "vramtrack_device_leak_paged",
               "1 while an alert about a leak on the device is active; 0 while it leaks but nobody has been notified "
               "yet; absent "
               "without a leak.");
  Family paged_because(out, "vramtrack_device_leak_paged_info",
                       "Why that alert was raised, in words, as a label; always 1.");
  Family suspect(out, "vramtrack_suspect_info",
                 "The process whose growth explains the device's growth, as labels; always 1.");
  constexpr std::array<Pattern, 5> kPatterns = {Pattern::gradual_leak, Pattern::step_increase, Pattern::cyclic,
                                                Pattern::sudden_spike, Pattern::unknown};
  for (const Device& d : devices) {
    if (d.used == nullptr) continue;
    const Finding& f = d.used->verdict.finding;
    const Labels labels = labels_of_finding(d);
    for (const Pattern pattern : kPatterns)
      verdict.add(f.leak && f.pattern == pattern ? 1.0 : 0.0, labels, {{"pattern", std::string(to_string(pattern))}});
    const ConclusionWords concluded = conclusion_words(view, *d.used);
    words.add(1.0, d.labels, {{"verdict", concluded.verdict}, {"tone", std::string(to_string(concluded.tone))}});
    severity.add(static_cast<double>(d.used->verdict.severity), labels);
    slow.add(f.state == State::slow_growth ? 1.0 : 0.0, labels);
    suspected.add(f.stage == Stage::suspected ? 1.0 : 0.0, labels);
    const auto is_standing_leak = [](const Alert& a) {
      return a.kind == AlertKind::leak && a.ended == AlertEnd::standing;
    };
    const auto alert = std::find_if(d.used->alerts.begin(), d.used->alerts.end(), is_standing_leak);
    const bool is_paged = alert != d.used->alerts.end();
    const Labels process = labels_of_suspect(d, options);
    if (f.leak || is_paged) paged.add(is_paged ? 1.0 : 0.0, labels, {{"work", work_of_leak(d, process)}});
    if (is_paged) paged_because.add(1.0, labels, {{"reason", alert->paged_because}});
    if (!process.empty()) suspect.add(1.0, d.labels, process);
  }
}

/// The subsequent figures. If nothing is known yet, there are none, which is different from zero.
void add_figures(Families& out, const std::vector<Device>& devices) {
  Family confidence(out, "vramtrack_confidence_ratio", "Probability that the device's memory leaks, 0 to 1.");
  Family growth(out, "vramtrack_growth_bytes_per_second", "Growth of memory use: median of the estimate.");
  Family growth_low(out, "vramtrack_growth_low_bytes_per_second", "Its 10th percentile.");
  Family growth_high(out, "vramtrack_growth_high_bytes_per_second", "Its 90th percentile.");
  Family fit(out, "vramtrack_r_squared_ratio", "How well a straight line fits the growth: R squared, 0 to 1.");
  Family eta(out, "vramtrack_oom_eta_seconds",
             "Time until memory runs out: median of the forecast; absent if it does not run out.");
  Family eta_low(out, "vramtrack_oom_eta_low_seconds", "Its 10th percentile.");
  Family eta_high(out, "vramtrack_oom_eta_high_seconds", "Its 90th percentile.");
  Family onset(out, "vramtrack_onset_timestamp_seconds", "Time when the leak began; absent without a leak.");
  for (const Device& d : devices) {
    if (d.used == nullptr || d.used->verdict.finding.state == State::too_short) continue;
    const Finding& f = d.used->verdict.finding;
    const Labels labels = labels_of_finding(d);
    confidence.add(f.confidence, labels);
    growth.add(f.growth_bytes_per_s.mid, labels);
    growth_low.add(f.growth_bytes_per_s.low, labels);
    growth_high.add(f.growth_bytes_per_s.high, labels);
    fit.add(f.r_squared, labels);
    if (f.oom_in_s) {
      eta.add(f.oom_in_s->mid, labels);
      eta_low.add(f.oom_in_s->low, labels);
      eta_high.add(f.oom_in_s->high, labels);
    }
    if (f.leak && f.onset) onset.add(static_cast<double>(f.onset->time_since_epoch().count()) * 1e-9, labels);
  }
}

void add_alerts(Families& out, const View& view, const std::vector<Device>& devices, const MetricsOptions& options) {
  Family standing(out, "vramtrack_alerts_standing",
                  "Active alerts of the device and its processes; a leak that both show counts once.");
  Family silenced(out, "vramtrack_alerts_silenced",
                  "How many of the active alerts are silenced: no notifications are sent for them.");
  for (const Device& d : devices) {
    std::vector<const SeriesView*> all = d.processes;
    for (const SeriesView* s : {d.unattributed, d.used})
      if (s != nullptr) all.push_back(s);
    standing.add(vramtrack::standing(incidents_of(all)), d.labels);
    std::erase_if(all, [&](const SeriesView* s) { return !options.silenced || !options.silenced(view, *s); });
    silenced.add(vramtrack::standing(incidents_of(all)), d.labels);
  }
}

/// The conclusions about the parts of a device: its processes, and the memory outside them.
void add_parts(Families& out, const std::vector<Device>& devices) {
  Family leaking(out, "vramtrack_device_processes_leaking", "Number of processes whose own verdict is a leak.");
  Family rest_leaking(out, "vramtrack_device_unattributed_leaking",
                      "1 while the memory that no visible process holds leaks, else 0.");
  Family rest_growth(out, "vramtrack_device_unattributed_growth_bytes_per_second",
                     "Growth of the memory that no visible process holds: median of the estimate.");
  Family stalled(out, "vramtrack_device_processes_stalled",
                 "Number of processes that hold memory on the device and make no progress, though they should.");
  Family stalled_bytes(out, "vramtrack_device_stalled_memory_bytes", "Device memory that these processes hold.");
  Family unclear(out, "vramtrack_device_processes_no_progress",
                 "Number of processes that make no progress, where it is not clear whether they should.");
  for (const Device& d : devices) {
    std::uint64_t leaks = 0;
    std::uint64_t stalls = 0;
    std::uint64_t held_bytes = 0;
    std::uint64_t doubtful = 0;
    for (const SeriesView* p : d.processes) {
      if (p->verdict.finding.leak && !p->ignored) ++leaks;
      if (p->stall && p->stall->judgement == StallJudgement::unclear) ++doubtful;
      if (!p->stall || p->stall->judgement != StallJudgement::stalled) continue;
      ++stalls;
      held_bytes += p->used_bytes;
    }
    leaking.add(leaks, d.labels);
    stalled.add(stalls, d.labels);
    stalled_bytes.add(held_bytes, d.labels);
    unclear.add(doubtful, d.labels);
    if (d.unattributed == nullptr) continue;
    const Finding& rest = d.unattributed->verdict.finding;
    rest_leaking.add(rest.leak ? 1.0 : 0.0, d.labels);
    if (rest.state != State::too_short) rest_growth.add(rest.growth_bytes_per_s.mid, d.labels);
  }
}

/// Only if allocations are traced. A process that holds memory on several devices is shown on the one where it holds
/// most.
void add_sites(Families& out, const std::vector<Device>& devices, const MetricsOptions& options) {
  Family live(out, "vramtrack_site_live_bytes",
              "Memory that a line of a program has allocated since tracing began and still holds (telemetry.enabled).");
  Family categories(out, "vramtrack_category_live_bytes",
                    "Memory that a process under 'vramtrack run --watch', or a traced one (telemetry.enabled), holds, "
                    "by what it is for.");
  using Process = std::tuple<std::uint32_t, std::uint64_t, std::string>;
  std::map<Process, const SeriesView*> most;
  for (const Device& d : devices)
    for (const SeriesView* p : d.processes) {
      const SeriesView*& known = most[{p->key.pid, p->key.pid_start_ticks, p->key.host}];
      if (known == nullptr || p->used_bytes > known->used_bytes) known = p;
    }
  for (const Device& d : devices) {
    std::vector<std::pair<const SeriesView*, const SiteLifetimes*>> sites;
    for (const SeriesView* p : d.processes) {
      if (most[{p->key.pid, p->key.pid_start_ticks, p->key.host}] != p) continue;
      for (const SiteLifetimes& site : p->sites) sites.emplace_back(p, &site);
      for (const auto& [category, bytes] : options.categories ? options.categories(*p) : CategoryBytesByName()) {
        Labels more = labels_of_process(d, *p, options);
        more.emplace_back("category", category);
        categories.add(bytes, d.labels, more);
      }
    }
    std::stable_sort(sites.begin(), sites.end(),
                     [](const auto& a, const auto& b) { return a.second->live_bytes > b.second->live_bytes; });
    if (sites.size() > options.top_processes) sites.resize(options.top_processes);
    for (const auto& [p, site] : sites) {
      Labels more = labels_of_process(d, *p, options);
      more.emplace_back("site", site->site);
      live.add(site->live_bytes, d.labels, more);
    }
  }
}

void add_processes(Families& out, const std::vector<Device>& devices, const MetricsOptions& options) {
  const std::size_t top = options.top_processes;
  Family used(out, "vramtrack_process_memory_used_bytes",
              "Memory that one process holds: the largest processes and those that grow most (metrics.per-process).");
  Family peak(out, "vramtrack_process_memory_peak_bytes",
              "The most that one process has held, or that earlier runs of its program are known to have held.");
  Family headroom(out, "vramtrack_process_memory_headroom_bytes",
                  "Free memory of the device if the process reached that again; negative: this much is missing.");
  Family wall(out, "vramtrack_process_memory_wall_bytes",
              "Limit on the memory of one process, where it is reached before the device is full.");
  Family wall_used(out, "vramtrack_process_memory_wall_used_bytes",
                   "Memory in use by all processes that share that limit.");
  Family wall_growth(out, "vramtrack_process_memory_wall_growth_bytes_per_second",
                     "Growth of all processes that share that limit together.");
  Family host(out, "vramtrack_process_host_anonymous_bytes",
              "Host memory of one process that no file backs: anonymous, shared and swapped out.");
  Family host_resident(out, "vramtrack_process_host_resident_bytes", "Resident host memory of one process.");
  Family host_pinned(out, "vramtrack_process_host_pinned_bytes", "Pinned host memory of one process.");
  Family host_left(out, "vramtrack_process_host_available_bytes",
                   "How much the host memory of one process can still grow, within its cgroup and the machine.");
  Family host_leak(out, "vramtrack_process_host_leaking", "1 while the host memory of one process leaks, else 0.");
  Family growth(out, "vramtrack_process_growth_bytes_per_second",
                "Growth of the memory of one process: median of the estimate.");
  Family stalled(out, "vramtrack_process_stalled_seconds",
                 "How long a stalled process has made no progress; absent for other processes.");
  Family rest(out, "vramtrack_processes_rest_memory_bytes", "Memory that all other visible processes hold together.");
  Family rest_count(out, "vramtrack_processes_rest", "Number of other visible processes.");
  for (const Device& d : devices) {
    std::set<const SeriesView*> chosen;
    const auto choose = [&](auto greater) {
      std::vector<const SeriesView*> sorted = d.processes;
      std::stable_sort(sorted.begin(), sorted.end(), greater);
      chosen.insert(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(std::min(top, sorted.size())));
    };
    choose([](const SeriesView* a, const SeriesView* b) { return a->used_bytes > b->used_bytes; });
    choose([](const SeriesView* a, const SeriesView* b) {
      return a->verdict.finding.growth_bytes_per_s.mid > b->verdict.finding.growth_bytes_per_s.mid;
    });
    std::uint64_t others = 0;
    std::uint64_t others_bytes = 0;
    for (const SeriesView* p : d.processes) {
      if (!chosen.contains(p)) {
        ++others;
        others_bytes += p->used_bytes;
        continue;
      }
      const Labels more = labels_of_process(d, *p, options);
      used.add(p->used_bytes, d.labels, more);
      if (p->headroom) {
        peak.add(p->headroom->peak_bytes, d.labels, more);
        headroom.add(static_cast<double>(p->headroom->left_bytes), d.labels, more);
      }
      if (p->wall) {
        Labels of_wall = more;
        of_wall.emplace_back("set_by", p->wall->name);
        wall.add(p->wall->bytes, d.labels, of_wall);
        wall_used.add(p->wall->used_bytes, d.labels, of_wall);
        wall_growth.add(p->wall->growth_bytes_per_s, d.labels, of_wall);
      }
      if (p->host) {
        host.add(p->host->anonymous_bytes, d.labels, more);
        if (p->host->resident_bytes) host_resident.add(*p->host->resident_bytes, d.labels, more);
        if (p->host->pinned_bytes) host_pinned.add(*p->host->pinned_bytes, d.labels, more);
        if (p->host->available_bytes) host_left.add(*p->host->available_bytes, d.labels, more);
      }
      for (const SeriesView* of_host : d.host_series)
        if (process_key(of_host->key) == process_key(p->key))
          host_leak.add(of_host->verdict.finding.leak ? 1.0 : 0.0, d.labels, more);
      if (p->stall && p->stall->judgement == StallJudgement::stalled)
        stalled.add(p->stall->stalled_for_s, d.labels, more);
      if (p->verdict.finding.state != State::too_short)
        growth.add(p->verdict.finding.growth_bytes_per_s.mid, d.labels, more);
    }
    rest.add(others_bytes, d.labels);
    rest_count.add(others, d.labels);
  }
}

void add_own(Families& out, const View& view, const OwnCost& own, const MetricsOptions& options) {
  Family(out, "vramtrack_build_info", "The agent's version; always 1.").add(1.0, {{"version", options.version}});
  Family(out, "vramtrack_series", "Number of time series that the agent follows.")
      .add(static_cast<std::uint64_t>(view.series.size()), {});
  Family(out, "vramtrack_last_sample_timestamp_seconds", "Time of the last sample.")
      .add(static_cast<double>(view.time.time_since_epoch().count()) * 1e-9, {});
  Family(out, "vramtrack_polls_total", "Polls since the start.", kCounter).add(own.polls, {});
  Family(out, "vramtrack_late_polls_total", "Polls that began more than half a period late.", kCounter)
      .add(own.late_polls, {});
  Family(out, "vramtrack_samples_total", "Samples received.", kCounter).add(own.samples, {});
  {
    Family kills(out, "vramtrack_host_out_of_memory_total",
                 "Processes that the kernel ended because the memory of the machine or of a cgroup ran out, by which "
                 "of the two, and by whether they held GPU memory.",
                 kCounter);
    for (const auto& [what, count] : own.host_kills)
      kills.add(count, {{"reason", what.first}, {"held_gpu", what.second ? "yes" : "no"}});
  }
  Family(out, "vramtrack_observe_seconds_total",
         "Time spent storing samples, computing verdicts and building the view.", kCounter)
      .add(own.observe_s, {});
  Family(out, "vramtrack_progress_looks_total", "Checks whether processes that hold memory make progress.", kCounter)
      .add(own.looks, {});
  Family(out, "vramtrack_progress_seconds_total", "Time spent on these checks.", kCounter).add(own.look_s, {});
  {
    Family time(out, "vramtrack_source_poll_seconds_total", "Time spent polling a source.", kCounter);
    Family polls(out, "vramtrack_source_polls_total", "Polls of a source.", kCounter);
    Family failed(out, "vramtrack_source_failed_polls_total", "Polls of a source that failed.", kCounter);
    for (const SourceCost& s : own.sources) {
      time.add(s.poll_s, {{"source", s.name}});
      polls.add(s.polls, {{"source", s.name}});
      failed.add(s.failed_polls, {{"source", s.name}});
    }
  }
  Family(out, "vramtrack_recording",
         "1 while samples are recorded into the store; 0 if recording is off or the disk refuses writes.")
      .add(own.recording && !own.store_failing ? 1.0 : 0.0, {});
  if (own.recording) Family(out, "vramtrack_store_bytes", "Size of the store's file.").add(own.store_bytes, {});
  Family(out, "vramtrack_http_requests_total", "Requests answered.", kCounter).add(own.requests, {});
  Family(out, "vramtrack_http_refused_connections_total", "Connections refused because too many were open.", kCounter)
      .add(own.refused_connections, {});
  Family(out, "vramtrack_http_streams", "Clients of the live stream.").add(own.streams, {});
  {
    Family acts(out, "vramtrack_acts_total", "Steps of policies, by outcome.", kCounter);
    for (const auto& [what, count] : own.acts) acts.add(count, {{"action", what.first}, {"outcome", what.second}});
  }
  Family(out, "process_cpu_seconds_total", "CPU time of the agent.", kCounter).add(own.cpu_s, {});
  Family(out, "process_resident_memory_bytes", "Resident memory of the agent.").add(own.resident_bytes, {});
}

}  // namespace

std::string prometheus_text(const View& view, const OwnCost& own, const MetricsOptions& options) {
  Families families;
  const std::vector<Device> devices = devices_of(view, options.host);
  add_memory(families, devices);
  add_health(families, devices, view.time);
  add_verdicts(families, view, devices, options);
  add_figures(families, devices);
  add_alerts(families, view, devices, options);
  add_parts(families, devices);
  add_sites(families, devices, options);
  if (options.per_process) add_processes(families, devices, options);
  add_own(families, view, own, options);
  return metrics::text_of(std::move(families));
}

}  // namespace vramtrack
