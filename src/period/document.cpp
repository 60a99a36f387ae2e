#include "period/document.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/end_words.hpp"
#include "core/format.hpp"
#include "core/incident.hpp"
#include "core/option.hpp"
#include "core/order.hpp"
#include "period/sections.hpp"
#include "report/conclusion_words.hpp"
#include "report/headline.hpp"
#include "report/health.hpp"
#include "report/total.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostProcesses = 12;  ///< per device, in addition to those that grow or had an alert
constexpr std::size_t kMostAlerts = 200;

bool is_device(const SeriesView& s) {
  return s.key.pid == 0;
}

bool interesting(const PeriodSeries& s) {
  return grows(s.view.verdict.finding) || !s.alerts.empty();
}

/// A series of the report with its description.
struct DescribedSeries {
  const PeriodSeries& series;
  ConclusionWords words;
};

std::string verdict_of(const DescribedSeries& s) {
  if (!s.series.has_verdict) return "only summaries are left";
  return s.words.headline + (s.series.gone ? ", no longer seen" : "");
}

Tone tone_of(const DescribedSeries& s) {
  return s.series.has_verdict ? s.words.tone : Tone::faint;
}

std::string eta_of(const PeriodReport& report, const PeriodSeries& s) {
  const auto& oom_in_s = s.view.verdict.finding.oom_in_s;
  return s.has_verdict && oom_in_s ? report.scale.eta(*oom_in_s) : "";
}

/// The predicted time of running out, as a time of day: "in 0h 47m" is wrong by the time a report is read.
std::string predicted_end_of(const PeriodReport& report, const PeriodSeries& s) {
  const Finding& f = s.view.verdict.finding;
  if (!s.has_verdict || s.gone || !f.leak || !f.oom_in_s || !s.view.last || report.scale.counts_steps()) return {};
  const auto at = [&](double in_s) { return report.moment(*s.view.last + from_seconds(in_s)); };
  return fmt::format("out of memory at {}, between {} and {}", at(f.oom_in_s->mid), at(f.oom_in_s->low),
                     at(f.oom_in_s->high));
}

std::string user_of(const SeriesView& s) {
  return s.process ? printable(s.process->user) : "";
}

std::string command_of(const SeriesView& s) {
  if (!s.process) return fmt::format("pid {}", s.key.pid);
  const std::string& command = s.process->command.empty() ? s.process->name : s.process->command;
  return fmt::format("pid {} {}", s.key.pid, printable(command));
}

std::string job_label(const SeriesView& s) {
  const JobName job = job_of(s);
  return job.kind == "process" ? "" : job_words(job.kind, job.id);
}

std::string peak_of(const PeriodReport& report, const PeriodSeries& s) {
  std::uint64_t peak = 0;
  for (const HistoryPoint& p : s.history) peak = std::max(peak, p.max);
  return report.scale.bytes(static_cast<double>(peak));
}

std::string used_of(const PeriodReport& report, const PeriodSeries& s) {
  if (s.history.empty()) return "";
  const auto used = static_cast<double>(s.has_verdict && s.view.samples > 0 ? static_cast<double>(s.view.used_bytes)
                                                                            : s.history.back().mean);
  if (is_device(s.view) && s.view.device.capacity_bytes)
    return report.scale.bytes_of(used, static_cast<double>(*s.view.device.capacity_bytes));
  return report.scale.bytes(used);
}

std::vector<DescribedSeries> describe_all(const PeriodReport& report) {
  std::vector<ConclusionWords> words = series_words(report);
  std::vector<DescribedSeries> out;
  for (std::size_t i = 0; i < words.size(); ++i) out.push_back({report.series[i], std::move(words[i])});
  return out;
}

/// Past events of the period; empty if there are none.
std::string past_words(const PeriodReport& report, std::size_t devices) {
  std::vector<const SeriesView*> ran_out;
  for (const PeriodSeries& s : report.series) {
    const auto did = [](const auto& end) { return end.how == EndKind::out_of_memory; };
    const bool a_run_did = std::any_of(s.view.runs.begin(), s.view.runs.end(),
                                       [&](const Run& run) { return run.end.has_value() && did(run); });
    if (is_total(s.view) && (a_run_did || (s.view.verdict.end && did(*s.view.verdict.end)))) ran_out.push_back(&s.view);
  }
  if (!ran_out.empty())
    return fmt::format("{} {}", which_devices(ran_out, devices), words_of_end(EndKind::out_of_memory).plain);
  return has_leak(report) ? "no leak now, but there was one" : "";
}

std::string title_of(const PeriodReport& report) {
  const View view = view_of(report);
  std::vector<SeenSeries> series;
  for (std::size_t i = 0; i < view.series.size(); ++i) series.push_back({&view.series[i], report.series[i].gone});
  const Machine machine = machine_of(series, view.time);
  if (machine.matter == Matter::no_device) return "no samples";
  if (machine.matter < Matter::ended)
    if (std::string past = past_words(report, machine.devices); !past.empty()) return past;
  std::optional<Interval> first;  ///< that of the first device to run out of memory
  if (machine.matter == Matter::leaking)
    for (const SeriesView* s : machine.subjects)
      if (const auto& its = s->verdict.finding.oom_in_s; its && (!first || its->mid < first->mid)) first = its;
  return machine.words + (first ? ", " + report.scale.oom(*first) : "");
}

std::string period_words(const PeriodReport& report) {
  if (!report.first || !report.last) return "no samples";
  return fmt::format("{} to {}, {}", report.moment(*report.first), report.moment(*report.last),
                     report.scale.duration(seconds_between(*report.first, *report.last)));
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + printable(text);
  return out;
}

Facts facts(const PeriodReport& report) {
  Facts out;
  out.rows.emplace_back("period", period_words(report));
  out.rows.emplace_back("from", joined(report.files));
  double step_s = report.bucket_s;
  for (const PeriodSeries& s : report.series) step_s = std::max(step_s, s.view.interval_s);
  std::string counts = fmt::format("verdicts from {} sample{}; charts in steps of {}", report.samples,
                                   report.samples == 1 ? "" : "s", report.scale.duration(step_s));
  if (report.samples == 0) counts = "only summaries of this period are left, so there are no verdicts";
  out.rows.emplace_back("data", counts);
  return out;
}

Table gpu_table(const PeriodReport& report, const std::vector<DescribedSeries>& all) {
  Table out;
  out.header = {"GPU", "used", "peak", "verdict", "growth", "probability of a leak", "out of memory in", "suspect"};
  out.right = {1, 2, 4, 5};
  for (const DescribedSeries& one : all) {
    const PeriodSeries& s = one.series;
    if (!is_total(s.view)) continue;
    out.rows.push_back({device_words(s.view), used_of(report, s), peak_of(report, s), verdict_of(one),
                        s.has_verdict ? one.words.growth : "", s.has_verdict ? one.words.probability : "",
                        eta_of(report, s), s.has_verdict ? one.words.suspect : ""});
    out.tones.push_back(tone_of(one));
  }
  return out;
}

/// The device's processes: those that grow or had an alert, then the largest.
void process_table(const PeriodReport& report, const std::vector<DescribedSeries>& words, const std::string& device_id,
                   std::vector<Block>& blocks) {
  std::vector<const DescribedSeries*> all;
  for (const DescribedSeries& s : words)
    if (s.series.view.key.metric == Metric::process_used && s.series.view.key.device_id == device_id) all.push_back(&s);
  if (all.empty()) return;
  std::stable_partition(all.begin(), all.end(), [](const DescribedSeries* s) { return interesting(s->series); });
  Table out;
  out.header = {"process", "user", "job", "used", "peak", "verdict", "growth", "probability of a leak"};
  out.right = {3, 4, 6, 7};
  std::size_t plain = 0;
  for (const DescribedSeries* one : all) {
    const PeriodSeries& s = one->series;
    if (!interesting(s) && ++plain > kMostProcesses) continue;
    out.rows.push_back({command_of(s.view), user_of(s.view), job_label(s.view), used_of(report, s), peak_of(report, s),
                        verdict_of(*one), s.has_verdict ? one->words.growth : "",
                        s.has_verdict ? one->words.probability : ""});
    out.tones.push_back(tone_of(*one));
  }
  blocks.emplace_back(std::move(out));
  if (plain > kMostProcesses)
    blocks.emplace_back(
        Paragraph{fmt::format("{} more processes without a sign of a leak are in the JSON.", plain - kMostProcesses)});
}

void device_section(const PeriodReport& report, const std::vector<DescribedSeries>& all, std::size_t index,
                    std::vector<Block>& blocks) {
  const DescribedSeries& one = all[index];
  const PeriodSeries& s = one.series;
  blocks.emplace_back(Heading{2, device_words(s.view) + ": " + verdict_of(one), tone_of(one)});
  blocks.emplace_back(Chart{index});
  Facts out;
  const auto add = [&out](const std::vector<Fact>& facts) {
    for (const Fact& fact : facts) out.rows.emplace_back(fact.label, fact.text);
  };
  if (std::string end = predicted_end_of(report, s); !end.empty()) out.rows.emplace_back("forecast", std::move(end));
  if (s.has_verdict) add(one.words.facts);
  if (report.last)
    for (const HealthProblem& p : judge_health(s.view, *report.last).problems)
      out.rows.emplace_back("health", fmt::format("{}: {}; {}", to_string(p.condition), p.text, p.next));
  // Facts about its processes besides their growth.
  for (const DescribedSeries& process : all) {
    const SeriesView& view = process.series.view;
    if (view.key.pid == 0 || device_key(view.key) != device_key(s.view.key) || !process.series.has_verdict) continue;
    for (const Fact& fact : process.words.facts)
      if (fact.label == "wall" || fact.label == "ran out")
        out.rows.emplace_back(fact.label, fmt::format("{}: {}", process_words(view), fact.text));
  }
  add(one.words.advice);
  for (const Fact& other : one.words.dissent)
    if (s.has_verdict && other.label == "dissent") out.rows.emplace_back(other.label, other.text);
  if (is_device(s.view) && !s.view.device.capacity_bytes)
    out.rows.emplace_back("capacity", fmt::format("unknown, so the time to out-of-memory cannot be predicted; pass {}",
                                                  name_of(Option::capacity)));
  if (s.has_verdict && !one.words.next.empty()) out.rows.emplace_back("next", one.words.next);
  if (!out.rows.empty()) blocks.emplace_back(std::move(out));
  process_table(report, all, s.view.key.device_id, blocks);
}

/// Sections for drivers that report the memory of processes but not that of the card.
void device_less_sections(const PeriodReport& report, const std::vector<DescribedSeries>& all,
                          std::vector<Block>& blocks) {
  std::vector<std::string> done;
  for (const DescribedSeries& s : all)
    if (is_total(s.series.view)) done.push_back(s.series.view.key.device_id);
  for (const DescribedSeries& s : all) {
    const SeriesView& view = s.series.view;
    if (std::find(done.begin(), done.end(), view.key.device_id) != done.end()) continue;
    done.push_back(view.key.device_id);
    blocks.emplace_back(Heading{2, device_words(view) + ": the whole device's use is unknown", Tone::notice});
    process_table(report, all, view.key.device_id, blocks);
  }
}

std::string end_of(const PeriodReport& report, const PeriodAlert& a, const AlertWords& words) {
  if (!a.alert.cleared && a.watch_ended) return "not known: its watch ended";
  return (a.alert.cleared ? report.moment(*a.alert.cleared) + ": " : "") + words.ended;
}

/// An alert, and the processes that report the same leak.
struct DescribedIncident {
  const PeriodSeries* series;
  const PeriodAlert* alert;
  std::vector<const PeriodSeries*> by;
};

/// Counts incidents: one leak is one incident, even if a device and its process each raised an alert.
std::vector<DescribedIncident> described_incidents(const PeriodReport& report) {
  std::vector<DescribedIncident> all;
  std::vector<AlertOf> alerts;
  for (const PeriodSeries& s : report.series)
    for (const PeriodAlert& a : s.alerts) {
      all.push_back({&s, &a, {}});
      alerts.push_back({s.view.key, a.alert});
    }
  std::vector<DescribedIncident> out;
  for (const Incident& incident : incidents_of(alerts)) {
    DescribedIncident words = all[incident.speaks];
    for (const std::size_t i : incident.members) {
      if (i == incident.speaks) continue;
      // A process may report one leak in several series: its own memory, and that of its allocator.
      const SeriesKey& key = all[i].series->view.key;
      const bool is_new = std::none_of(words.by.begin(), words.by.end(), [&](const PeriodSeries* s) {
        return process_key(s->view.key) == process_key(key);
      });
      if (key.pid != 0 && is_new) words.by.push_back(all[i].series);
      // The alert that was raised first gives time and reason.
      if (all[i].alert->alert.raised < words.alert->alert.raised) words.alert = all[i].alert;
    }
    out.push_back(std::move(words));
  }
  order(out, [](const DescribedIncident& a, const DescribedIncident& b) {
    return a.alert->alert.raised < b.alert->alert.raised;
  });
  return out;
}

std::string subject_words(const DescribedIncident& words) {
  std::string device = device_words(words.series->view);
  if (!is_device(words.series->view)) return device + ", " + command_of(words.series->view);
  if (words.by.empty()) return device;
  return device + ", " +
         (words.by.size() == 1 ? command_of(words.by.front()->view) : fmt::format("{} processes", words.by.size()));
}

void alert_section(const PeriodReport& report, std::vector<Block>& blocks) {
  const std::vector<DescribedIncident> all = described_incidents(report);
  blocks.emplace_back(Heading{2, "Alerts"});
  if (all.empty()) {
    blocks.emplace_back(Paragraph{"No alert was raised or active in this period."});
    return;
  }
  Table out;
  out.header = {"raised",
                "what",
                "pattern",
                "highest severity",
                "probability of a leak",
                "growth at the alert",
                "predicted out of memory in",
                "end",
                "because"};
  out.right = {4, 5};
  out.prose = true;
  const std::size_t from = all.size() > kMostAlerts ? all.size() - kMostAlerts : 0;
  for (std::size_t i = from; i < all.size(); ++i) {
    const PeriodAlert& a = *all[i].alert;
    const Finding& f = a.alert.finding;
    const AlertWords words = alert_words(a.alert, report.scale);
    out.rows.push_back(
        {report.moment(a.alert.raised), subject_words(all[i]), words.what, std::string(to_string(a.alert.severity)),
         a.alert.kind != AlertKind::leak ? "" : format_percent(f.confidence),
         a.alert.kind != AlertKind::leak ? "" : report.scale.rate(f.growth_bytes_per_s),
         f.oom_in_s ? report.scale.eta(*f.oom_in_s) : "", end_of(report, a, words), printable(f.because)});
    out.tones.push_back(a.alert.cleared ? Tone::plain : words.tone);
  }
  blocks.emplace_back(std::move(out));
  if (from > 0) blocks.emplace_back(Paragraph{fmt::format("{} earlier ones are in the JSON.", from)});
}

constexpr std::size_t kMostActs = 100;

void acts_section(const PeriodReport& report, std::vector<Block>& blocks) {
  if (report.acts.empty()) return;
  blocks.emplace_back(Heading{2, "Actions of policies"});
  Table out;
  out.header = {"time", "policy", "step", "outcome", "whom", "because"};
  out.prose = true;
  const std::size_t from = report.acts.size() > kMostActs ? report.acts.size() - kMostActs : 0;
  for (std::size_t i = from; i < report.acts.size(); ++i) {
    const PeriodAct& a = report.acts[i];
    out.rows.push_back({report.moment(a.time), printable(a.policy), printable(a.action),
                        printable(fmt::format("{}{}: {}", a.event, a.dry_run ? " (dry run)" : "", a.text)),
                        printable(a.subject), printable(a.because)});
    out.tones.push_back(a.event == "failed" || a.event == "refused" || a.event == "undo_failed" || a.event == "left"
                            ? Tone::warning
                            : Tone::plain);
  }
  blocks.emplace_back(std::move(out));
  if (from > 0) blocks.emplace_back(Paragraph{fmt::format("{} earlier ones are in the JSON.", from)});
}

void notes_section(const PeriodReport& report, std::vector<Block>& blocks) {
  if (!report.notices.empty()) {
    blocks.emplace_back(Heading{2, "Events"});
    Facts out;
    for (const Notice& n : report.notices) out.rows.emplace_back(report.moment(n.time), printable(n.text));
    blocks.emplace_back(std::move(out));
  }
  if (report.warnings.empty() && report.skipped_lines == 0) return;
  blocks.emplace_back(Heading{2, "Notes on the data"});
  Facts out;
  if (report.skipped_lines > 0)
    out.rows.emplace_back("skipped", fmt::format("{} line{} that could not be read", report.skipped_lines,
                                                 report.skipped_lines == 1 ? "" : "s"));
  for (const std::string& warning : report.warnings) out.rows.emplace_back("warning", printable(warning));
  blocks.emplace_back(std::move(out));
}

/// Removes columns that are empty in every row.
void drop_empty_columns(Table& table) {
  for (std::size_t c = table.header.size(); c-- > 0;) {
    if (std::any_of(table.rows.begin(), table.rows.end(), [c](const auto& row) { return !row[c].empty(); })) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.header.erase(table.header.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
    std::erase(table.right, c);
    for (std::size_t& right : table.right)
      if (right > c) --right;
  }
}

}  // namespace

View view_of(const PeriodReport& report) {
  View view;
  view.time = report.last.value_or(Timestamp{});
  view.clock_is_relative = report.clock_is_relative;
  view.scale = report.scale;
  if (report.is_log) view.files = report.files;  // nobody was notified at that time
  for (const PeriodSeries& s : report.series) {
    view.series.push_back(s.view);
    view.series.back().alerts.clear();
    for (const PeriodAlert& a : s.alerts) view.series.back().alerts.push_back(a.alert);
  }
  return view;
}

std::vector<ConclusionWords> series_words(const PeriodReport& report) {
  const View view = view_of(report);
  std::vector<ConclusionWords> out;
  for (const SeriesView& s : view.series) out.push_back(conclusion_words(view, s, {.origin = Origin::files}));
  return out;
}

Document report_document(const PeriodReport& report) {
  Document out;
  out.title = "GPU memory: " + title_of(report);
  out.blocks.emplace_back(facts(report));
  const std::vector<DescribedSeries> all = describe_all(report);
  out.blocks.emplace_back(gpu_table(report, all));
  for (const bool first : {true, false})
    for (std::size_t i = 0; i < report.series.size(); ++i) {
      const PeriodSeries& s = report.series[i];
      if (is_total(s.view) && interesting(s) == first) device_section(report, all, i, out.blocks);
    }
  device_less_sections(report, all, out.blocks);
  alert_section(report, out.blocks);
  crash_section(report, out.blocks);
  risk_section(report, out.blocks);
  idle_section(report, out.blocks);
  acts_section(report, out.blocks);
  notes_section(report, out.blocks);
  for (Block& block : out.blocks)
    if (auto* table = std::get_if<Table>(&block)) drop_empty_columns(*table);
  return out;
}

}  // namespace vramtrack
