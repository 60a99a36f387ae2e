// The sections about money: the work that crashes lose, and the cost of idle memory.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/option.hpp"
#include "period/sections.hpp"

namespace vramtrack {
namespace {

std::string gpu_hours(double hours) {
  if (hours > 0 && hours < 0.01) return "under 0.01";
  return fmt::format("{:.{}f}", hours, hours < 10 ? 2 : hours < 1000 ? 1 : 0);
}

std::string usd(double value) {
  if (value > 0 && value < 0.01) return "under 0.01 USD";
  return fmt::format("{:.{}f} USD", value, value < 1000 ? 2 : 0);
}

std::string gpu_hours(const Interval& i) {
  if (gpu_hours(i.low) == gpu_hours(i.high)) return gpu_hours(i.mid);
  return fmt::format("{} ({}–{})", gpu_hours(i.mid), gpu_hours(i.low), gpu_hours(i.high));
}

std::string usd(const Interval& i) {
  if (usd(i.low) == usd(i.high)) return usd(i.mid);
  const std::string low = usd(i.low);
  return fmt::format("{} ({}–{})", usd(i.mid), low.substr(0, low.size() - 4), usd(i.high));
}

std::string_view basis_words(JobLoss::Basis basis) {
  switch (basis) {
    case JobLoss::Basis::last_checkpoint:
      return "since the last checkpoint, as given";
    case JobLoss::Basis::checkpoint_every:
      return "half the time between two checkpoints";
    case JobLoss::Basis::start:
      return "since it began: no checkpoint is known";
    case JobLoss::Basis::first_seen:
      return "lower bound: all work since it was first seen, as no checkpoint is known";
  }
  return "";
}

std::string device_names(const PeriodReport& report, const std::vector<std::string>& ids) {
  std::string out;
  for (const std::string& id : ids) {
    std::string name = printable(id);
    for (const PeriodSeries& s : report.series)
      if (s.view.key.device_id == id && s.view.device.index)
        name = fmt::format("{} {}", s.view.device.parent_id.empty() ? "GPU" : "MIG", *s.view.device.index);
    out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

/// Empty if steps are counted: there are no hours, and the whole column is left out.
std::string gpu_hours_or_unknown(const PeriodReport& report, const LostWork& lost) {
  if (report.scale.counts_steps()) return {};
  return lost.gpu_h ? gpu_hours(*lost.gpu_h) : "not known";
}

std::string usd_or_unknown(const PeriodReport& report, const LostWork& lost) {
  if (report.scale.counts_steps()) return {};
  return lost.usd ? usd(*lost.usd) : "not known";
}

bool lists_processes(const PeriodReport& report) {
  return std::any_of(report.series.begin(), report.series.end(),
                     [](const PeriodSeries& s) { return s.view.key.pid != 0; });
}

/// Why the amount of work is unknown.
std::string unknown_words(const PeriodReport& report, std::string_view work) {
  if (report.scale.counts_steps())
    return fmt::format(
        "the log counts {3} and has no clock, so the {1} is unknown; pass {2} with the time that one {0} takes",
        report.scale.step, work, name_of(Option::interval), plural(report.scale.step));
  if (lists_processes(report)) return fmt::format("no visible process grows, so the {} is unknown", work);
  return fmt::format("processes were not recorded, so the {} is unknown{}", work,
                     report.is_log ? "; add a log of processes" : "");
}

/// A table of lost work: one row per job, and the sum. `work`: its title. `moment`: the cell with the time.
template <class Job, class Moment>
Table loss_table(const PeriodReport& report, const std::vector<Job>& jobs, const LostWork& total, std::string_view work,
                 Moment moment) {
  Table out;
  out.right = {4, 5};
  for (const Job& job : jobs)
    out.rows.push_back({job_words(job.kind, job.id), printable(job.command), device_names(report, job.devices),
                        moment(job), gpu_hours_or_unknown(report, job.lost), usd_or_unknown(report, job.lost),
                        job.lost.gpu_h ? std::string(basis_words(job.basis)) : unknown_words(report, work)});
  if (total.gpu_h && jobs.size() > 1)
    out.rows.push_back({"all", "", "", "", gpu_hours_or_unknown(report, total), usd_or_unknown(report, total),
                        "sum of the known ones"});
  return out;
}

}  // namespace

void crash_section(const PeriodReport& report, std::vector<Block>& blocks) {
  const Money& money = report.money;
  if (money.crashes.empty()) return;
  blocks.emplace_back(Heading{2, "Lost in crashes"});
  Table out = loss_table(report, money.crashes, money.crashed, "lost work",
                         [&](const JobCrash& crash) { return report.moment(crash.time); });
  out.header = {"job", "command", "GPUs", "out of memory at", "work lost, GPU-hours", "cost", "basis"};
  blocks.emplace_back(std::move(out));
  std::string note = "Counts every GPU on which the job held memory.";
  if (!money.usd_per_gpu_hour && !report.scale.counts_steps()) note += " For money, set cost.usd-per-gpu-hour.";
  blocks.emplace_back(Paragraph{std::move(note)});
}

void risk_section(const PeriodReport& report, std::vector<Block>& blocks) {
  const Money& money = report.money;
  blocks.emplace_back(Heading{2, "At risk"});
  if (money.jobs.empty()) {
    const bool is_unknown = std::any_of(report.series.begin(), report.series.end(), [](const PeriodSeries& s) {
      return s.view.verdict.finding.leak && !s.view.device.capacity_bytes;
    });
    blocks.emplace_back(
        Paragraph{is_unknown ? "When memory runs out cannot be predicted: the capacity of a leaking GPU is unknown."
                             : "No job is predicted to run out of memory."});
    return;
  }
  Table out = loss_table(report, money.jobs, money.at_risk, "work at risk",
                         [&](const JobRisk& job) { return report.scale.eta(job.oom_in_s); });
  out.header = {"job", "command", "GPUs", "out of memory in", "work lost then, GPU-hours", "cost", "basis"};
  blocks.emplace_back(std::move(out));
  std::string note =
      "The work that a crash would lose, on every GPU where the job holds memory. Other jobs on the same GPU may crash "
      "as well and are not counted.";
  if (!money.usd_per_gpu_hour && !report.scale.counts_steps()) note += " For money, set cost.usd-per-gpu-hour.";
  blocks.emplace_back(Paragraph{std::move(note)});
}

void idle_section(const PeriodReport& report, std::vector<Block>& blocks) {
  const Money& money = report.money;
  blocks.emplace_back(Heading{2, "Idle memory"});
  if (report.scale.counts_steps()) {
    blocks.emplace_back(
        Paragraph{fmt::format("The log counts {} and has no clock, so the time that memory was idle is unknown.",
                              plural(report.scale.step))});
    return;
  }
  Table out;
  out.header = {
      "GPU", "observed, h", "held by no process, h", "held, no kernel ran, h", "most", "by share of memory, GPU-hours"};
  out.right = {1, 2, 3, 4, 5};
  bool utilisation = false;
  bool processes = false;
  for (const IdleDevice& d : money.idle) {
    utilisation = utilisation || d.utilisation_known;
    processes = processes || d.processes_known;
    if (d.orphaned_h <= 0 && d.unused_h <= 0) continue;
    out.rows.push_back({device_names(report, {d.device_id}), gpu_hours(d.observed_h),
                        d.processes_known ? gpu_hours(d.orphaned_h) : "not known",
                        d.utilisation_known ? gpu_hours(d.unused_h) : "not known",
                        report.scale.bytes(static_cast<double>(d.most_bytes)), gpu_hours(d.share_h)});
  }
  if (!out.rows.empty()) blocks.emplace_back(std::move(out));
  std::string note;
  if ((processes || utilisation) && money.idle_gpu_h <= 0) {
    note = "None was found. ";
  } else if (processes || utilisation) {
    note = fmt::format("{} GPU-hours in all; {} if weighted by the share of memory that is idle.",
                       gpu_hours(money.idle_gpu_h), gpu_hours(money.idle_share_h));
    if (money.usd_per_gpu_hour)
      note += fmt::format(" That is {} if nobody else could use these GPUs, {} if weighted.",
                          usd(money.idle_gpu_h * *money.usd_per_gpu_hour),
                          usd(money.idle_share_h * *money.usd_per_gpu_hour));
    note += ' ';
  }
  if (!processes)
    note += fmt::format("{} not recorded, so memory that no process holds cannot be found. ",
                        lists_processes(report) ? "The memory of whole GPUs was" : "Processes were");
  if (!utilisation)
    note += "Utilisation was not recorded, so processes that hold memory without computing cannot be found. ";
  note.pop_back();
  blocks.emplace_back(Paragraph{std::move(note)});
}

}  // namespace vramtrack
