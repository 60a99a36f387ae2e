// The cost of idle memory. docs/report.md defines every figure computed here.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/driver_share.hpp"
#include "core/format.hpp"
#include "period/lost_work.hpp"
#include "period/period.hpp"
#include "report/conclusion.hpp"

namespace vramtrack {
namespace {

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
  // If a bucket is narrower than the sampling interval, it stands for the time until the next sample.
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

bool is_process(const PeriodSeries& s) {
  return s.view.key.metric == Metric::process_used && s.view.key.pid != 0;
}

JobName job_of(const SeriesView& s) {
  if (s.process) {
    const ProcessInfo& p = *s.process;
    // All steps of a Slurm job end together with the job.
    if (!p.slurm_job.empty()) return {"Slurm job", p.slurm_job.substr(0, p.slurm_job.find('.'))};
    if (!p.pod.empty()) return {"pod", p.pod};
    if (!p.container.empty()) return {"container", p.container};
  }
  return {"process", std::to_string(s.key.pid)};
}

std::string job_words(const std::string& kind, const std::string& id) {
  if (id.empty()) return "no visible process";
  constexpr std::size_t kShort = 12;  // container tools show ids of this length
  return kind + ' ' + printable(kind == "container" ? id.substr(0, kShort) : id);
}

bool has_leak(const PeriodReport& report) {
  return std::any_of(report.series.begin(), report.series.end(), [](const PeriodSeries& s) {
    return std::any_of(s.alerts.begin(), s.alerts.end(), [](const PeriodAlert& a) { return shows_leak(a.alert); }) ||
           std::any_of(s.view.suspicions.begin(), s.view.suspicions.end(), shows_leak);
  });
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
  reckon_lost_work(report, money);
  // Without a clock, idle hours of a GPU are unknown.
  for (const PeriodSeries& s : report.series) {
    if (s.view.key.metric != Metric::device_used || s.view.key.pid != 0 || report.scale.counts_steps()) continue;
    money.idle.push_back(idle_of(report, s));
    money.idle_gpu_h += money.idle.back().orphaned_h + money.idle.back().unused_h;
    money.idle_share_h += money.idle.back().share_h;
  }
  report.money = std::move(money);
}

}  // namespace vramtrack
