// What a predicted crash and idle memory cost. docs/report.md defines every figure made here.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/driver_share.hpp"
#include "core/format.hpp"
#include "period/period.hpp"

namespace vramtrack {
namespace {

bool is_process(const PeriodSeries& s) {
  return s.view.key.metric == Metric::process_used && s.view.key.pid != 0;
}

Interval scaled(const Interval& i, double factor) {
  return {i.low * factor, i.mid * factor, i.high * factor};
}

Interval sum(const Interval& a, const Interval& b) {
  return {a.low + b.low, a.mid + b.mid, a.high + b.high};
}

/// The processes of `job`, or the device's that nobody visible explains (then empty).
std::vector<const PeriodSeries*> members(const PeriodReport& report, const JobName& job) {
  std::vector<const PeriodSeries*> out;
  for (const PeriodSeries& s : report.series)
    if (is_process(s) && !s.view.ended && !s.gone && job_of(s.view) == job) out.push_back(&s);
  return out;
}

/// Who is predicted to run out of memory: the series' own process, or the suspect of its device.
const PeriodSeries* whom(const PeriodReport& report, const PeriodSeries& s) {
  if (is_process(s)) return &s;
  const auto& suspect = s.view.verdict.suspect;
  if (!suspect || suspect->pid == 0) return nullptr;
  for (const PeriodSeries& p : report.series)
    if (is_process(p) && device_key(p.view.key) == device_key(s.view.key) && p.view.key.pid == suspect->pid &&
        p.view.key.pid_start_ticks == suspect->pid_start_ticks)
      return &p;
  return nullptr;
}

bool names(const CostRules::LastCheckpoint& last, const JobRisk& job) {
  return last.job.empty() || last.job == job.id ||
         std::any_of(job.pids.begin(), job.pids.end(),
                     [&](std::uint32_t pid) { return std::to_string(pid) == last.job; });
}

/// Seconds of work that the crash loses.
Interval lost_s(const PeriodReport& report, JobRisk& job, const std::vector<const PeriodSeries*>& processes) {
  const Timestamp end = report.last.value_or(Timestamp{});
  Timestamp started = end;
  bool before = false;
  for (const PeriodSeries* p : processes) {
    started = std::min(started, p->first_seen.value_or(end));
    before = before || p->seen_from_start;
  }
  const Interval left = {std::max(0.0, job.oom_in_s.low), std::max(0.0, job.oom_in_s.mid),
                         std::max(0.0, job.oom_in_s.high)};
  // The one that names the job wins over the one for all.
  const CostRules::LastCheckpoint* last = nullptr;
  for (const auto& candidate : report.rules.last_checkpoints)
    if (names(candidate, job) && (last == nullptr || last->job.empty() || !candidate.job.empty())) last = &candidate;
  if (last != nullptr) {
    job.basis = JobRisk::Basis::last_checkpoint;
    const double since_s = std::max(0.0, seconds_between(last->time, end));
    return sum({since_s, since_s, since_s}, left);
  }
  const double age_s = seconds_between(started, end);
  const Interval whole = sum({age_s, age_s, age_s}, left);
  if (report.rules.checkpoint_every_s && !(whole.high < *report.rules.checkpoint_every_s && !before)) {
    // The crash falls anywhere between two checkpoints: 10, 50 and 90 per cent of the way.
    const double every_s = *report.rules.checkpoint_every_s;
    job.basis = JobRisk::Basis::checkpoint_every;
    return {0.1 * every_s, 0.5 * every_s, 0.9 * every_s};
  }
  job.basis = before ? JobRisk::Basis::first_seen : JobRisk::Basis::start;
  return whole;
}

void fill(PeriodReport& report, JobRisk& job, const JobName& name) {
  const auto processes = members(report, name);
  std::set<std::string> devices;
  for (const PeriodSeries* p : processes) {
    devices.insert(p->view.key.device_id);
    if (std::find(job.pids.begin(), job.pids.end(), p->view.key.pid) == job.pids.end())
      job.pids.push_back(p->view.key.pid);
    if (job.command.empty() && p->view.process)
      job.command = p->view.process->command.empty() ? p->view.process->name : p->view.process->command;
  }
  job.devices.assign(devices.begin(), devices.end());
  job.lost_gpu_h = scaled(lost_s(report, job, processes), static_cast<double>(devices.size()) / 3600);
}

void reckon_jobs(PeriodReport& report, Money& money) {
  std::map<std::string, std::size_t> known;  // by kind and id
  for (const PeriodSeries& s : report.series) {
    const Finding& f = s.view.verdict.finding;
    if (!s.has_verdict || s.view.ended || s.gone || s.view.ignored || !f.leak || !f.oom_in_s) continue;
    if (s.view.key.metric != Metric::device_used && !is_process(s)) continue;
    const PeriodSeries* who = whom(report, s);
    const JobName name = who != nullptr ? job_of(who->view) : JobName{};
    if (who != nullptr && (who->view.ended || who->gone)) continue;
    const std::string key = who != nullptr ? name.kind + '/' + name.id : '/' + s.view.key.device_id;
    const auto [at, is_new] = known.emplace(key, money.jobs.size());
    if (is_new) {
      money.jobs.push_back({});
      JobRisk& job = money.jobs.back();
      job.kind = name.kind;
      job.id = name.id;
      job.oom_in_s = *f.oom_in_s;
      if (who == nullptr) job.devices = {s.view.key.device_id};
    }
    // Of several predictions for one job the earliest ends it.
    JobRisk& job = money.jobs[at->second];
    if (f.oom_in_s->mid < job.oom_in_s.mid) job.oom_in_s = *f.oom_in_s;
  }
  for (JobRisk& job : money.jobs) {
    if (job.id.empty()) continue;
    fill(report, job, {job.kind, job.id});
    money.lost_gpu_h = sum(money.lost_gpu_h.value_or(Interval{}), *job.lost_gpu_h);
    if (money.usd_per_gpu_hour) job.lost_usd = scaled(*job.lost_gpu_h, *money.usd_per_gpu_hour);
  }
  if (money.lost_gpu_h && money.usd_per_gpu_hour) money.lost_usd = scaled(*money.lost_gpu_h, *money.usd_per_gpu_hour);
  std::stable_sort(money.jobs.begin(), money.jobs.end(), [](const JobRisk& a, const JobRisk& b) {
    return (a.lost_gpu_h ? a.lost_gpu_h->mid : -1) > (b.lost_gpu_h ? b.lost_gpu_h->mid : -1);
  });
}

/// Mean bytes of the device's processes in each bucket.
std::map<Timestamp, double> held_by_processes(const PeriodReport& report, const std::string& device_id, bool& known) {
  std::map<Timestamp, double> held;
  for (const PeriodSeries& s : report.series) {
    if (!is_process(s) || (s.view.key.device_id != device_id && s.view.device.parent_id != device_id)) continue;
    known = true;
    for (const HistoryPoint& p : s.history) held[p.start] += p.mean;
  }
  return held;
}

IdleDevice idle_of(const PeriodReport& report, const PeriodSeries& device) {
  IdleDevice idle;
  idle.device_id = device.view.key.device_id;
  const auto held = held_by_processes(report, idle.device_id, idle.processes_known);
  const double driver = driver_share_bytes(device.view.device.capacity_bytes);
  // A bucket narrower than the sampling stands for the time until the next sample.
  const double bucket_h = std::max(report.bucket_s, device.view.interval_s) / 3600;
  for (const HistoryPoint& p : device.history) {
    idle.observed_h += bucket_h;
    const auto at = held.find(p.start);
    const double orphaned = idle.processes_known ? p.mean - (at == held.end() ? 0.0 : at->second) : 0.0;
    double bytes = 0;
    if (p.utilisation) idle.utilisation_known = true;
    if (p.utilisation && *p.utilisation <= 0 && p.mean > driver) {
      idle.unused_h += bucket_h;
      bytes = p.mean;
    } else if (orphaned > driver) {
      idle.orphaned_h += bucket_h;
      bytes = orphaned;
    }
    idle.most_bytes = std::max(idle.most_bytes, static_cast<std::uint64_t>(bytes));
    if (bytes > 0 && device.view.device.capacity_bytes && *device.view.device.capacity_bytes > 0)
      idle.share_h += bucket_h * std::min(1.0, bytes / static_cast<double>(*device.view.device.capacity_bytes));
  }
  return idle;
}

}  // namespace

JobName job_of(const SeriesView& s) {
  if (s.process) {
    const ProcessInfo& p = *s.process;
    // All steps of a Slurm job end with it.
    if (!p.slurm_job.empty()) return {"Slurm job", p.slurm_job.substr(0, p.slurm_job.find('.'))};
    if (!p.pod.empty()) return {"pod", p.pod};
    if (!p.container.empty()) return {"container", p.container};
  }
  return {"process", std::to_string(s.key.pid)};
}

std::string job_words(const std::string& kind, const std::string& id) {
  if (id.empty()) return "no visible process";
  constexpr std::size_t kShort = 12;  // as container tools cut ids
  return kind + ' ' + printable(kind == "container" ? id.substr(0, kShort) : id);
}

bool has_leak(const PeriodReport& report) {
  for (const PeriodSeries& s : report.series)
    for (const PeriodAlert& a : s.alerts)
      if (a.alert.finding.leak && a.alert.ended != AlertEnd::withdrawn) return true;
  return false;
}

std::vector<bool> charted_series(const PeriodReport& report) {
  constexpr std::size_t kMostOfDevice = 8;
  std::map<std::string, std::size_t> taken;
  std::vector<bool> out;
  for (const PeriodSeries& s : report.series) {
    out.push_back(s.view.key.pid == 0 || !s.alerts.empty() || grows(s.view.verdict.finding) ||
                  ++taken[s.view.key.device_id] <= kMostOfDevice);
  }
  return out;
}

void reckon(PeriodReport& report) {
  Money money;
  if (report.rules.usd_per_gpu_hour > 0) money.usd_per_gpu_hour = report.rules.usd_per_gpu_hour;
  reckon_jobs(report, money);
  for (const PeriodSeries& s : report.series) {
    if (s.view.key.metric != Metric::device_used || s.view.key.pid != 0) continue;
    money.idle.push_back(idle_of(report, s));
    money.idle_gpu_h += money.idle.back().orphaned_h + money.idle.back().unused_h;
    money.idle_share_h += money.idle.back().share_h;
  }
  report.money = std::move(money);
}

}  // namespace vramtrack
