// The sections about money: what a crash would lose, what idle memory costs.
#include <fmt/format.h>

#include "core/format.hpp"
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

std::string_view basis_words(JobRisk::Basis basis) {
  switch (basis) {
    case JobRisk::Basis::last_checkpoint:
      return "since the last checkpoint, as given";
    case JobRisk::Basis::checkpoint_every:
      return "half the time between two checkpoints";
    case JobRisk::Basis::start:
      return "since it began: no checkpoint is known";
    case JobRisk::Basis::first_seen:
      return "at least, since it was first seen: no checkpoint is known";
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

}  // namespace

void risk_section(const PeriodReport& report, std::vector<Block>& blocks) {
  const Money& money = report.money;
  blocks.emplace_back(Heading{2, "At risk"});
  if (money.jobs.empty()) {
    blocks.emplace_back(Paragraph{"No job is predicted to run out of memory."});
    return;
  }
  Table out;
  out.header = {"job", "command", "GPUs", "out of memory in", "work lost then, GPU-hours", "cost", "counted"};
  out.right = {4, 5};
  for (const JobRisk& job : money.jobs) {
    const bool known = job.lost_gpu_h.has_value();
    out.rows.push_back(
        {job_words(job.kind, job.id), printable(job.command), device_names(report, job.devices),
         format_eta(job.oom_in_s), known ? gpu_hours(*job.lost_gpu_h) : "not known",
         job.lost_usd ? usd(*job.lost_usd) : "not known",
         known ? std::string(basis_words(job.basis)) : "no visible process grows, so the work at risk is unknown"});
  }
  if (money.lost_gpu_h && money.jobs.size() > 1)
    out.rows.push_back({"all", "", "", "", gpu_hours(*money.lost_gpu_h),
                        money.lost_usd ? usd(*money.lost_usd) : "not known", "sum of the known ones"});
  blocks.emplace_back(std::move(out));
  std::string note =
      "The work that a crash would lose, on every GPU where the job holds memory. Other jobs on the same GPU may crash "
      "as well and are not counted.";
  if (!money.usd_per_gpu_hour) note += " For money, set cost.usd-per-gpu-hour.";
  blocks.emplace_back(Paragraph{std::move(note)});
}

void idle_section(const PeriodReport& report, std::vector<Block>& blocks) {
  const Money& money = report.money;
  blocks.emplace_back(Heading{2, "Idle memory"});
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
                        format_bytes(static_cast<double>(d.most_bytes)), gpu_hours(d.share_h)});
  }
  if (!out.rows.empty()) blocks.emplace_back(std::move(out));
  std::string note;
  if ((processes || utilisation) && money.idle_gpu_h <= 0) {
    note = "None was found. ";
  } else if (processes || utilisation) {
    note = fmt::format("{} GPU-hours in all; {} by the share of the memory so held.", gpu_hours(money.idle_gpu_h),
                       gpu_hours(money.idle_share_h));
    if (money.usd_per_gpu_hour)
      note += fmt::format(" That is {} if nobody else could use these GPUs, {} by share.",
                          usd(money.idle_gpu_h * *money.usd_per_gpu_hour),
                          usd(money.idle_share_h * *money.usd_per_gpu_hour));
    note += ' ';
  }
  if (!processes) note += "Processes were not recorded, so memory that no process holds cannot be found. ";
  if (!utilisation)
    note += "Utilisation was not recorded, so processes that hold memory without computing cannot be found. ";
  note.pop_back();
  blocks.emplace_back(Paragraph{std::move(note)});
}

}  // namespace vramtrack
