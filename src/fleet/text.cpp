#include "fleet/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/format.hpp"
#include "core/option.hpp"
#include "core/printable.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack::fleet {
namespace {

std::string gpu_words(const GpuVerdict& gpu) {
  const std::string number = gpu.device.index ? fmt::format("GPU {}", *gpu.device.index) : gpu.device.id;
  return printable(gpu.device.host.empty() ? number : gpu.device.host + ' ' + number);
}

std::string rate_words(double bytes_per_s) {
  return bytes_per_s > 0 ? '+' + format_scaled_rate(bytes_per_s) : format_scaled_rate(bytes_per_s);
}

struct Row {
  std::string job, first, leaks, used, growth, end, sure;
};

Row row_of(const LeakingJob& job) {
  const LeakingGpu& first = job.leaks.front();
  const GpuVerdict& gpu = *first.gpu;
  Row row;
  row.job = printable(job.is_named ? job.name : std::string("(no job known)"));
  row.first = gpu_words(gpu);
  row.leaks = fmt::format("{} of {}", job.leaks.size(), job.gpus);
  row.used = gpu.device.capacity_bytes
                 ? format_bytes_of(static_cast<double>(gpu.used_bytes), static_cast<double>(*gpu.device.capacity_bytes))
                 : format_bytes(static_cast<double>(gpu.used_bytes));
  if (job.state == JobState::ended) {
    row.growth = rate_words(first.alert->finding.growth_bytes_per_s.mid);
    row.end = "ended: " + alert_words(*first.alert, kSecondsAndBytes).state;
  } else {
    row.growth = rate_words(job.growth_bytes_per_s);
    row.end = job.oom_in_s ? format_eta(*job.oom_in_s) : "not known";
    if (job.state == JobState::suspected) row.end = "suspected: " + row.end;
  }
  row.sure = format_percent(first.alert->finding.confidence);
  return row;
}

std::string table(const std::vector<LeakingJob>& jobs, std::size_t most) {
  std::vector<Row> rows = {{"JOB", "FIRST TO LEAK", "GPUS", "USED", "GROWTH", "OUT OF MEMORY IN", "PROBABILITY"}};
  for (const LeakingJob& job : jobs) {
    if (rows.size() > most) break;
    rows.push_back(row_of(job));
  }
  std::string out;
  const auto width = [&](std::string Row::*cell, std::size_t most_columns) {
    std::size_t widest = 0;
    for (const Row& row : rows) widest = std::max(widest, columns(row.*cell));
    return std::min(widest, most_columns);
  };
  const std::size_t job = width(&Row::job, 40), first = width(&Row::first, 40), leaks = width(&Row::leaks, 16);
  const std::size_t used = width(&Row::used, 20), growth = width(&Row::growth, 16), end = width(&Row::end, 40);
  for (const Row& row : rows)
    out += fmt::format("{}  {}  {}  {}  {}  {}  {}\n", fit(row.job, job), fit(row.first, first), fit(row.leaks, leaks),
                       fit_right(row.used, used), fit_right(row.growth, growth), fit(row.end, end), row.sure);
  if (jobs.size() + 1 > rows.size())
    out += fmt::format("and {} more; {} shows more, {} all\n", format_number(jobs.size() + 1 - rows.size()),
                       name_of(Option::limit), name_of(Option::json));
  return out;
}

std::string names_of_exporters(const Scan& scan) {
  std::string out;
  for (const std::string& name : scan.exporters) out += (out.empty() ? "" : ", ") + printable(name);
  return out;
}

std::string first_hosts(const std::vector<std::string>& hosts) {
  std::string out;
  for (std::size_t i = 0; i < hosts.size() && i < 3; ++i) out += (i > 0 ? ", " : "") + printable(hosts[i]);
  if (hosts.size() > 3) out += fmt::format(" and {} more", hosts.size() - 3);
  return out;
}

std::string what_is_missing(const Scan& scan, const FleetFindings& found) {
  std::string out;
  for (const Unread& unread : scan.unread)
    out += fmt::format("Not read: {}: {}\n",
                       unread.hosts.empty() ? printable(words_of(unread))
                                            : fmt::format("{} of {}", words_of(unread), first_hosts(unread.hosts)),
                       printable(unread.why));
  if (scan.was_cancelled)
    out += scan.machines.empty() ? "The scan was interrupted.\n"
                                 : "The scan was interrupted: the results above cover only part of the fleet.\n";
  std::size_t without_capacity = 0, shared = 0;
  for (const MachineVerdict& machine : scan.machines)
    for (const GpuVerdict& gpu : machine.gpus) {
      if (!gpu.device.capacity_bytes) ++without_capacity;
      if (gpu.is_shared) ++shared;
    }
  if (without_capacity > 0)
    out += fmt::format(
        "{} without a known capacity: when memory runs out cannot be predicted. Export the total or free "
        "memory as well.\n",
        format_count(without_capacity, "GPU"));
  if (found.gpus_without_uuid > 0)
    out += fmt::format(
        "{} without a UUID: distinguished by machine and number. If a machine is renamed, its GPUs count as new.\n",
        format_count(found.gpus_without_uuid, "GPU"));
  if (shared > 0)
    out += fmt::format("{} with different series for several users: their shares were added up.\n",
                       format_count(shared, "GPU"));
  if (scan.unnamed_series > 0)
    out += fmt::format("{} skipped: no label names a GPU. 'vramtrack fleet exporters' shows which labels are read.\n",
                       format_count(scan.unnamed_series, "series"));
  return out + unknown_metrics_text(scan.unknown);
}

/// A job that leaks on only one of its nodes may well do so by chance: of many such findings, only the number is shown.
std::string findings_text(const std::vector<FleetFinding>& findings) {
  constexpr double kSure = 0.05;
  constexpr std::size_t kMostUnsure = 3;
  const auto is_unsure = [](const FleetFinding& f) { return f.kind == FindingKind::node && f.p_value > kSure; };
  const auto unsure = static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), is_unsure));
  std::string out;
  for (const FleetFinding& finding : findings)
    if (!is_unsure(finding) || unsure <= kMostUnsure) out += "\n" + printable(finding.text) + "\n";
  if (unsure > kMostUnsure)
    out += fmt::format(
        "\n{} jobs leak on one of their nodes and are healthy on the others: this is too little to tell "
        "whether the node or the work of that rank is the cause. {} lists them.\n",
        format_number(unsure), name_of(Option::json));
  return out;
}

}  // namespace

std::string scan_text(const Scan& scan, const FleetFindings& found, const ScanWords& words) {
  if (found.gpus == 0) return "No GPU was read, so none was judged.\n\n" + what_is_missing(scan, found);
  std::string out = fmt::format("{} on {}, the last {} of {} ({} samples by {}", format_count(found.gpus, "GPU"),
                                format_count(hosts_of(scan).size(), "machine"), words.length, names_of_exporters(scan),
                                format_number(scan.samples), words.path);
  out += words.took_s > 0 ? fmt::format(", in {})\n", format_span(words.took_s)) : ")\n";
  const auto of_state = [&](JobState state) {
    return static_cast<std::size_t>(
        std::count_if(found.jobs.begin(), found.jobs.end(), [&](const LeakingJob& job) { return job.state == state; }));
  };
  const std::size_t ended = of_state(JobState::ended);
  const bool is_part = !scan.unread.empty() || scan.was_cancelled;
  if (found.jobs.empty()) {
    out += is_part ? "No leak on the GPUs that were read.\n" : "No leak.\n";
  } else {
    out += found.leaking_gpus == 0 ? "No GPU leaks now"
                                   : fmt::format("{} {} now", format_count(found.leaking_gpus, "GPU"),
                                                 found.leaking_gpus == 1 ? "leaks" : "leak");
    if (found.suspected_gpus > 0)
      out += fmt::format("; {} {} suspected", format_number(found.suspected_gpus),
                         found.suspected_gpus == 1 ? "is" : "are");
    if (ended > 0)
      out += ended == 1 ? "; the leak of one job ended"
                        : fmt::format("; the leaks of {} jobs ended", format_number(ended));
    out += ".";
    if (found.gpu_hours_at_risk > 0)
      out += fmt::format(" A crash of the jobs that leak would lose up to {} GPU hours of work{}.",
                         format_number(static_cast<std::uint64_t>(std::llround(found.gpu_hours_at_risk))),
                         words.usd_per_gpu_hour > 0
                             ? fmt::format(", ${}", format_number(static_cast<std::uint64_t>(std::llround(
                                                        found.gpu_hours_at_risk * words.usd_per_gpu_hour))))
                             : std::string());
    out += "\n\n" + table(found.jobs, words.most_jobs);
    for (const LeakingJob& job : found.jobs)
      if (job.cache_ratio)
        out += fmt::format("\n{}: the key-value cache of its inference server is {} full.\n", printable(job.name),
                           format_percent(*job.cache_ratio));
  }
  out += findings_text(found.findings);
  if (const std::string missing = what_is_missing(scan, found); !missing.empty()) out += "\n" + missing;
  return out;
}

}  // namespace vramtrack::fleet
