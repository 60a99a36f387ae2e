// The work lost in predicted and actual crashes. docs/report.md defines every figure.
#include "period/lost_work.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/order.hpp"
#include "report/total.hpp"

namespace vramtrack {
namespace {

Interval scaled(const Interval& i, double factor) {
  return {i.low * factor, i.mid * factor, i.high * factor};
}

Interval sum(const Interval& a, const Interval& b) {
  return {a.low + b.low, a.mid + b.mid, a.high + b.high};
}

using Processes = std::vector<const PeriodSeries*>;

/// The processes of `job` for which `chosen` is true.
template <class Chosen>
Processes members(const PeriodReport& report, const JobName& job, Chosen chosen) {
  Processes out;
  for (const PeriodSeries& s : report.series)
    if (is_process(s) && chosen(s) && job_of(s.view) == job) out.push_back(&s);
  return out;
}

/// The process predicted to run out of memory: the series' own, or the suspect of its device.
const PeriodSeries* growing_process(const PeriodReport& report, const PeriodSeries& s) {
  if (is_process(s)) return &s;
  const auto& suspect = s.view.verdict.suspect;
  if (!suspect || suspect->pid == 0) return nullptr;
  for (const PeriodSeries& p : report.series)
    if (is_process(p) && device_key(p.view.key) == device_key(s.view.key) && p.view.key.pid == suspect->pid &&
        p.view.key.pid_start_ticks == suspect->pid_start_ticks)
      return &p;
  return nullptr;
}

bool names(const CostRules::LastCheckpoint& last, const JobLoss& job) {
  return last.job.empty() || last.job == job.id ||
         std::any_of(job.pids.begin(), job.pids.end(),
                     [&](std::uint32_t pid) { return std::to_string(pid) == last.job; });
}

/// When a job began, as far as known.
struct Begin {
  Timestamp time;
  bool before = false;  ///< it began before the recording
};

Begin begin_of(const Processes& processes, Timestamp end) {
  Begin begin{end};
  for (const PeriodSeries* p : processes) {
    begin.time = std::min(begin.time, p->first_seen.value_or(end));
    begin.before = begin.before || p->seen_from_start;
  }
  return begin;
}

/// Seconds of work lost by a crash at `now` plus `left_s`.
Interval lost_s(const CostRules& rules, JobLoss& job, const Begin& begin, Timestamp now, const Interval& left_s) {
  // A checkpoint given for this job takes precedence over one given for all jobs. One after the crash belongs to
  // another run.
  const CostRules::LastCheckpoint* last = nullptr;
  for (const auto& candidate : rules.last_checkpoints)
    if (candidate.time <= now && names(candidate, job) &&
        (last == nullptr || last->job.empty() || !candidate.job.empty()))
      last = &candidate;
  if (last != nullptr) {
    job.basis = JobLoss::Basis::last_checkpoint;
    const double since_s = std::max(0.0, seconds_between(last->time, now));
    return sum({since_s, since_s, since_s}, left_s);
  }
  const double age_s = seconds_between(begin.time, now);
  const Interval whole = sum({age_s, age_s, age_s}, left_s);
  if (rules.checkpoint_every_s && !(whole.high < *rules.checkpoint_every_s && !begin.before)) {
    // The crash falls anywhere between two checkpoints: 10, 50 and 90 per cent of the way.
    const double every_s = *rules.checkpoint_every_s;
    job.basis = JobLoss::Basis::checkpoint_every;
    return {0.1 * every_s, 0.5 * every_s, 0.9 * every_s};
  }
  job.basis = begin.before ? JobLoss::Basis::first_seen : JobLoss::Basis::start;
  return whole;
}

/// Describes the processes and where they hold memory.
void describe(JobLoss& job, const Processes& processes) {
  std::set<std::string> devices(job.devices.begin(), job.devices.end());
  for (const PeriodSeries* p : processes) {
    devices.insert(p->view.key.device_id);
    if (std::find(job.pids.begin(), job.pids.end(), p->view.key.pid) == job.pids.end())
      job.pids.push_back(p->view.key.pid);
    if (job.command.empty() && p->view.process)
      job.command = p->view.process->command.empty() ? p->view.process->name : p->view.process->command;
  }
  job.devices.assign(devices.begin(), devices.end());
}

/// Prices `lost_s` on every GPU of the job; adds it to `total`. Unknown if steps are counted: their duration is
/// unknown.
void price(JobLoss& job, const Interval& lost_s, const PeriodReport& report, const Money& money, LostWork& total) {
  if (report.scale.counts_steps()) return;
  const Interval gpu_h = scaled(lost_s, static_cast<double>(job.devices.size()) / 3600);
  job.lost.gpu_h = gpu_h;
  total.gpu_h = sum(total.gpu_h.value_or(Interval{}), gpu_h);
  if (!money.usd_per_gpu_hour) return;
  job.lost.usd = scaled(gpu_h, *money.usd_per_gpu_hour);
  total.usd = scaled(*total.gpu_h, *money.usd_per_gpu_hour);
}

void reckon_jobs(const PeriodReport& report, Money& money) {
  std::map<std::string, std::size_t> known;  // by kind and id
  for (const PeriodSeries& s : report.series) {
    const Finding& f = s.view.verdict.finding;
    if (!s.has_verdict || s.view.ended || s.gone || s.view.ignored || !f.leak || !f.oom_in_s) continue;
    if (!is_total(s.view) && !is_process(s)) continue;
    const PeriodSeries* who = growing_process(report, s);
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
    // If there are several predictions for a job, the earliest one ends it.
    JobRisk& job = money.jobs[at->second];
    if (f.oom_in_s->mid < job.oom_in_s.mid) job.oom_in_s = *f.oom_in_s;
  }
  for (JobRisk& job : money.jobs) {
    if (job.id.empty()) continue;
    const Processes processes =
        members(report, {job.kind, job.id}, [](const PeriodSeries& s) { return !s.view.ended && !s.gone; });
    describe(job, processes);
    const Timestamp now = report.last.value_or(Timestamp{});
    const Interval left_s = {std::max(0.0, job.oom_in_s.low), std::max(0.0, job.oom_in_s.mid),
                             std::max(0.0, job.oom_in_s.high)};
    price(job, lost_s(report.rules, job, begin_of(processes, now), now, left_s), report, money, money.at_risk);
  }
  order(money.jobs, [](const JobRisk& a, const JobRisk& b) {
    return (a.lost.gpu_h ? a.lost.gpu_h->mid : -1) > (b.lost.gpu_h ? b.lost.gpu_h->mid : -1);
  });
}

/// The process of a device that ended with `run`; nullptr: it was not recorded.
const PeriodSeries* ended_process(const PeriodReport& report, const PeriodSeries& device, const Run& run) {
  const PeriodSeries* latest = nullptr;
  for (const PeriodSeries& s : report.series)
    if (is_process(s) && run.pid != 0 && s.view.key.pid == run.pid &&
        device_key(s.view.key) == device_key(device.view.key) && s.first_seen && *s.first_seen <= *run.end &&
        (latest == nullptr || *s.first_seen > *latest->first_seen))
      latest = &s;  // a log may have two processes with the same pid
  return latest;
}

/// The job that ended with `run`. Its processes that were still running, or had ended within two samples, are lost too.
JobCrash crash_of(const PeriodReport& report, const PeriodSeries& device, const Run& run, const PeriodSeries* process,
                  Money& money, std::set<const PeriodSeries*>& crashed) {
  JobCrash crash;
  crash.time = *run.end;
  crash.devices = {device.view.key.device_id};
  Begin begin{run.begin, device.first_seen == run.begin};
  if (process != nullptr) {
    const JobName name = job_of(process->view);
    crash.kind = name.kind;
    crash.id = name.id;
    const Timestamp ended = crash.time - from_seconds(2 * device.view.interval_s);
    const Processes processes = members(report, name, [&](const PeriodSeries& s) {
      return s.first_seen && *s.first_seen <= crash.time && (!s.view.last || *s.view.last >= ended);
    });
    crashed.insert(processes.begin(), processes.end());
    describe(crash, processes);
    begin = begin_of(processes, crash.time);
  } else if (run.pid != 0) {
    crash.kind = "process";
    crash.id = std::to_string(run.pid);
    crash.pids = {run.pid};
  }
  price(crash, lost_s(report.rules, crash, begin, crash.time, {}), report, money, money.crashed);
  return crash;
}

void reckon_crashes(const PeriodReport& report, Money& money) {
  std::set<const PeriodSeries*> crashed;
  for (const PeriodSeries& device : report.series)
    for (const Run& run : device.view.runs) {
      if (!run.end || run.how < EndKind::out_of_memory || (report.first && *run.end < *report.first)) continue;
      const PeriodSeries* process = ended_process(report, device, run);
      if (process == nullptr || !crashed.contains(process))
        money.crashes.push_back(crash_of(report, device, run, process, money, crashed));
    }
  order(money.crashes, [](const JobCrash& a, const JobCrash& b) { return a.time < b.time; });
}

}  // namespace

void reckon_lost_work(const PeriodReport& report, Money& money) {
  reckon_jobs(report, money);
  reckon_crashes(report, money);
}

}  // namespace vramtrack
