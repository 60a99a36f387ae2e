// The period report for programs: vramtrack.report.v1 (docs/report.md).
#include "core/json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "period/document.hpp"
#include "report/conclusion_words_json.hpp"
#include "report/fields_json.hpp"
#include "report/report.hpp"

namespace vramtrack {
namespace {

using json = Json;

/// Rounded to six significant digits; always finite.
double number(double value) {
  if (!std::isfinite(value) || value == 0) return 0;
  const double magnitude = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * magnitude) / magnitude;
  return std::isfinite(rounded) ? rounded : value;
}

json interval(const std::optional<Interval>& i) {
  if (!i) return nullptr;
  return {{"low", number(i->low)}, {"mid", number(i->mid)}, {"high", number(i->high)}};
}

json date(const std::optional<Timestamp>& t, bool relative) {
  return t && !relative ? json(iso8601(*t)) : json(nullptr);
}

json offset_s(const std::optional<Timestamp>& t, const PeriodReport& report) {
  return t && report.first ? json(std::round(seconds_between(*report.first, *t) * 1000) / 1000) : json(nullptr);
}

std::string_view basis_name(JobLoss::Basis basis) {
  switch (basis) {
    case JobLoss::Basis::last_checkpoint:
      return "last_checkpoint";
    case JobLoss::Basis::checkpoint_every:
      return "checkpoint_every";
    case JobLoss::Basis::start:
      return "start";
    case JobLoss::Basis::first_seen:
      return "first_seen";
  }
  return "";
}

json job_json(const JobLoss& job) {
  return {{"kind", job.kind.empty() ? json(nullptr) : json(job.kind)},
          {"id", job.id.empty() ? json(nullptr) : json(job.id)},
          {"command", job.command.empty() ? json(nullptr) : json(job.command)},
          {"pids", job.pids},
          {"devices", job.devices},
          {"basis", job.lost.gpu_h ? json(basis_name(job.basis)) : json(nullptr)},
          {"lost_gpu_hours", interval(job.lost.gpu_h)},
          {"lost_usd", interval(job.lost.usd)}};
}

json idle_json(const IdleDevice& d, const Money& money) {
  const auto known = [](bool is, double value) { return is ? json(number(value)) : json(nullptr); };
  const bool any = d.processes_known || d.utilisation_known;
  const bool priced = any && money.usd_per_gpu_hour;
  return {
      {"device", d.device_id},
      {"observed_hours", number(d.observed_h)},
      {"no_process_hours", known(d.processes_known, d.orphaned_h)},
      {"no_kernel_hours", known(d.utilisation_known, d.unused_h)},
      {"share_hours", known(any, d.share_h)},
      {"most_bytes", any ? json(d.most_bytes) : json(nullptr)},
      {"usd_at_least", priced ? json(number(d.share_h * *money.usd_per_gpu_hour)) : json(nullptr)},
      {"usd_at_most", priced ? json(number((d.orphaned_h + d.unused_h) * *money.usd_per_gpu_hour)) : json(nullptr)}};
}

json money_json(const PeriodReport& report) {
  const Money& money = report.money;
  json out = {{"usd_per_gpu_hour", money.usd_per_gpu_hour ? json(number(*money.usd_per_gpu_hour)) : json(nullptr)},
              {"checkpoint_every_s", report.rules.checkpoint_every_s && !report.scale.counts_steps()
                                         ? json(number(*report.rules.checkpoint_every_s))
                                         : json(nullptr)},
              {"jobs", json::array()},
              {"lost_gpu_hours", interval(money.at_risk.gpu_h)},
              {"lost_usd", interval(money.at_risk.usd)},
              {"crashes", json::array()},
              {"crashed_gpu_hours", interval(money.crashed.gpu_h)},
              {"crashed_usd", interval(money.crashed.usd)},
              {"idle", json::array()}};
  for (const JobRisk& job : money.jobs) {
    out["jobs"].push_back(job_json(job));
    out["jobs"].back()["oom_in_s"] = interval(job.oom_in_s);
  }
  for (const JobCrash& crash : money.crashes) {
    out["crashes"].push_back(job_json(crash));
    out["crashes"].back()["time"] = date(crash.time, report.clock_is_relative);
    out["crashes"].back()["offset_s"] = offset_s(crash.time, report);
  }
  for (const IdleDevice& d : money.idle) out["idle"].push_back(idle_json(d, money));
  return out;
}

/// Its figures have no units in their names, so they are scaled here.
json history_json(const PeriodReport& report, const PeriodSeries& s) {
  json out = json::array();
  const double unit = scaled_name("bytes", report.scale).factor;
  const auto amount = [unit](double bytes) {
    return unit == 1 ? json(std::llround(bytes)) : json(number(bytes * unit));
  };
  for (const HistoryPoint& p : s.history) {
    json offset = offset_s(p.start, report);
    fields::multiply(offset, scaled_name("offset_s", report.scale).factor);
    out.push_back({std::move(offset), amount(static_cast<double>(p.min)), amount(p.mean),
                   amount(static_cast<double>(p.max)), p.count});
  }
  return out;
}

/// The lines of docs/formats/analysis.md, so that a series has the same content in every output, and a device and its
/// processes have the same conclusion.
std::vector<json> analysis_lines(const PeriodReport& report) {
  View view;
  view.clock_is_relative = report.clock_is_relative;
  view.scale = report.scale;
  // Seconds are counted from the report's first sample, not from the series' own. Devices come first in a View.
  view.series.emplace_back().first = report.first;
  for (const PeriodSeries& s : report.series) {
    SeriesView& one = view.series.emplace_back(s.view);
    one.alerts.clear();
    for (const PeriodAlert& a : s.alerts) one.alerts.push_back(a.alert);
  }
  std::vector<json> out;
  std::istringstream lines(find_report("json")->render(view, {}));
  for (std::string line; std::getline(lines, line);) out.push_back(json::parse(line).value_or(nullptr));
  out.erase(out.begin());
  return out;
}

json series_json(const PeriodReport& report, const PeriodSeries& s, json out, const ConclusionWords& words,
                 bool charted) {
  for (const char* common : {"schema", "files", "skipped_lines", "warnings"}) out.erase(common);
  if (!s.has_verdict) out["verdict"] = nullptr;
  out["told"] = s.has_verdict ? conclusion_words_json(words) : json(nullptr);
  const JobName job = job_of(s.view);
  out["job"] = s.view.key.pid == 0 ? json(nullptr) : json{{"kind", job.kind}, {"id", job.id}};
  out["user"] = s.view.process && !s.view.process->user.empty() ? json(s.view.process->user) : json(nullptr);
  out["ended"] = s.view.ended;
  out["gone"] = s.gone;
  for (std::size_t i = 0; i < s.alerts.size(); ++i) {
    out["alerts"][i]["because"] = s.alerts[i].alert.finding.because;
    out["alerts"][i]["watch_ended"] = s.alerts[i].watch_ended;
  }
  out["history"] = charted ? history_json(report, s) : json(nullptr);
  return out;
}

}  // namespace

std::string report_json(const PeriodReport& report) {
  json out = {{"schema", "vramtrack.report.v1"},
              {"files", report.files},
              {"start", date(report.first, report.clock_is_relative)},
              {"end", date(report.last, report.clock_is_relative)},
              {"duration_s", report.last ? offset_s(report.last, report) : json(0)},
              {"samples", report.samples},
              {"leak", has_leak(report)},
              {"step_s", number(report.bucket_s)}};
  out["money"] = money_json(report);
  out["series"] = json::array();
  const std::vector<bool> charted = charted_series(report);
  const std::vector<ConclusionWords> words = series_words(report);
  std::vector<json> lines = analysis_lines(report);
  for (std::size_t i = 0; i < report.series.size(); ++i)
    out["series"].push_back(series_json(report, report.series[i], std::move(lines[i]), words[i], charted[i]));
  out["events"] = json::array();
  for (const Notice& n : report.notices)
    out["events"].push_back(
        {{"time", date(n.time, report.clock_is_relative)}, {"offset_s", offset_s(n.time, report)}, {"text", n.text}});
  out["acts"] = json::array();
  for (const PeriodAct& a : report.acts)
    out["acts"].push_back({{"time", date(a.time, report.clock_is_relative)},
                           {"policy", a.policy},
                           {"action", a.action},
                           {"event", a.event},
                           {"dry_run", a.dry_run},
                           {"subject", a.subject},
                           {"text", a.text},
                           {"because", a.because}});
  out["skipped_lines"] = report.skipped_lines;
  out["warnings"] = report.warnings;
  return json_text(fields::line_in_scale(std::move(out), report.scale)) + '\n';
}

}  // namespace vramtrack
