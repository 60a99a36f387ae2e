// report: what happened in a period, what leaks, and what it will cost, from the store or from recordings.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "act/audit.hpp"
#include "cli/commands.hpp"
#include "cli/gpu_choice.hpp"
#include "cli/moment.hpp"
#include "cli/progress.hpp"
#include "cli/recorded.hpp"
#include "cli/shared_arguments.hpp"
#include "core/output_file.hpp"
#include "live/clock.hpp"
#include "period/gather.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNoLeak = 0;
constexpr int kLeak = 1;
constexpr int kFailed = 2;

struct ReportOptions {
  ConfigRequest config;
  std::vector<std::string> files;
  PeriodArguments period;
  std::vector<std::string> gpus;  ///< indices or ids
  std::string format;             ///< empty: determined by the extension of the output file, or text
  std::string output;             ///< empty: standard output
  std::optional<double> checkpoint_every_s;
  std::vector<std::string> last_checkpoints;  ///< TIME, or JOB=TIME
  LogArguments logs;
};

/// A format of the report, and the extensions of its files.
struct Form {
  std::string_view name;
  std::string_view words;
  std::vector<std::string_view> endings;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {{"text", "text", {".txt"}},
                                        {"md", "Markdown", {".md"}},
                                        {"json", "JSON", {".json"}},
                                        {"html", "one HTML page", {".html", ".htm"}}};
  return all;
}

const Form& form_of(const ReportOptions& o) {
  for (const Form& form : forms()) {
    const bool by_ending = std::any_of(form.endings.begin(), form.endings.end(),
                                       [&](std::string_view ending) { return o.output.ends_with(ending); });
    if (o.format.empty() ? by_ending : o.format == form.name) return form;
  }
  return forms().front();
}

/// The extension of the output file determines the format; an unknown extension is a mistake.
Status check_ending(const ReportOptions& o) {
  const std::string ending = std::filesystem::path(o.output).extension().string();
  if (!o.format.empty() || ending.empty()) return {};
  std::string known;
  for (const Form& form : forms())
    for (const std::string_view each : form.endings) {
      if (ending == each) return {};
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
    }
  return fail(fmt::format("--output {}: reports cannot be written as {}; use one of {}, or give --format", o.output,
                          ending, known));
}

Result<CostRules> cost_rules(const ReportOptions& o, const CostConfig& config, Timestamp now) {
  CostRules rules;
  rules.usd_per_gpu_hour = config.usd_per_gpu_hour;
  if (config.checkpoint_every_minutes > 0) rules.checkpoint_every_s = config.checkpoint_every_minutes * 60;
  if (o.checkpoint_every_s) rules.checkpoint_every_s = o.checkpoint_every_s;
  for (const std::string& text : o.last_checkpoints) {
    const std::size_t equals = text.find('=');
    CostRules::LastCheckpoint last;
    if (equals != std::string::npos) last.job = text.substr(0, equals);
    const std::string time = equals == std::string::npos ? text : text.substr(equals + 1);
    const auto moment = parse_moment("--last-checkpoint", time, o.logs.timezone, now);
    if (!moment) return fail(moment.error());
    last.time = *moment;
    rules.last_checkpoints.push_back(std::move(last));
  }
  return rules;
}

/// The default for a recording that is still being written (a store) is its last day.
Result<TimeRange> period(const ReportOptions& o, bool is_ongoing, Timestamp now) {
  auto range = time_range(o.period, o.logs.timezone, now);
  if (range && o.period.since.empty() && is_ongoing) range->from = range->to.value_or(now) - std::chrono::hours{24};
  return range;
}

/// Adds what policies did in the period: the record of actions is next to the store.
void add_acts(const std::string& store, const TimeRange& range, PeriodReport& report) {
  auto entries = act::read_audit(act::audit_path(store));
  if (!entries) {
    report.warnings.push_back(entries.error().message);
    return;
  }
  for (const act::AuditEntry& e : *entries) {
    if ((range.from && e.time < *range.from) || (range.to && e.time >= *range.to)) continue;
    if (!act::is_outcome(e) && e.event != "end") continue;
    report.acts.push_back(
        {e.time, e.policy, e.action, e.event, act::subject_words(e.subject), e.text, e.subject.because, e.dry_run});
  }
}

std::string render(const PeriodReport& report, std::string_view format, bool colour) {
  if (format == "md") return report_markdown(report);
  if (format == "json") return report_json(report);
  if (format == "html") return report_html(report);
  return report_text(report, colour);
}

int report(const ReportOptions& options, const LayeredConfig& layers, Console& console) {
  const auto failed = [&console](const std::string& why) {
    console.error("cannot report: " + why);
    return kFailed;
  };
  const Form& form = form_of(options);
  const LocalTimes local(options.output.empty() && form.name == "text" && console.is_terminal());
  const Timestamp now = time_of_day();
  const Config& config = layers.config();
  const auto chosen = files_or_store(options.files, config.store);
  if (!chosen) return failed(chosen.error().message);
  const std::vector<std::string>& files = *chosen;
  const auto kind = recorded_kind(options.files);
  if (!kind) return failed(kind.error().message);
  const auto rules = cost_rules(options, config.cost, now);
  if (!rules) return failed(rules.error().message);
  if (const Status checked = check_ending(options); !checked) return failed(checked.error().message);
  const auto range = period(options, (*kind)->is_ongoing, now);
  if (!range) return failed(range.error().message);
  const auto logs = log_options(options.logs);
  if (!logs) return failed(logs.error().message);

  const bool from_now = parse_duration_s(options.period.since) || parse_duration_s(options.period.until);
  ReportGatherer gatherer(config, *range,
                          from_now ? "a duration counts back from now, so give --since a time" : "give another period");
  std::optional<Progress> progress(std::in_place, console, files);
  auto gathered = gatherer.gather(**kind, files, *logs);
  if (!gathered) return failed(gathered.error().message);
  gathered->rules = *rules;
  if (files.size() == 1 && !gathered->is_log) add_acts(files.front(), *range, *gathered);
  const auto view_of = [](const PeriodSeries& s) -> const SeriesView& { return s.view; };
  if (const Status kept = keep_gpus(gathered->series, options.gpus, view_of); !kept)
    return failed(kept.error().message);
  reckon(*gathered);
  progress.reset();
  const std::string text = render(*gathered, form.name, options.output.empty() && console.style().colour);
  if (options.output.empty()) {
    console.write(text);
  } else if (const Status written = write_output(options.output, text); !written) {
    return failed(written.error().message);
  } else {
    console.warn(fmt::format("wrote the report as {} to {}", form.words, options.output));
  }
  return has_leak(*gathered) ? kLeak : kNoLeak;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<ReportOptions>();
  arguments.operands("FILE", "A store, or logs as for analyze (default: this user's store)", text(options->files))
      .file();
  add_period(
      arguments, options->period,
      "Start at this time, for example 2026-01-02T03:04, yesterday, or 8h (before now; default for a store: 24h)");
  add_gpus(arguments, options->gpus);
  const std::vector<std::string> formats = names_of(forms());
  arguments.format(formats, "Write as: " + joined(formats) + " (default: by the ending of --output, or text)",
                   text(options->format));
  arguments.output(options->output);
  arguments
      .option("--checkpoint-every", "DURATION", "How often the jobs save a checkpoint",
              duration(options->checkpoint_every_s))
      .in_manual("A crash loses the work since the last one.");
  arguments.repeated(
      "--last-checkpoint", "TIME",
      "When the jobs last saved a checkpoint: a time as in --since; JOB=TIME for one job (Slurm id, pid, ...)",
      text(options->last_checkpoints));
  add_log_arguments(arguments, options->logs);
  add_detector(arguments, options->config);
  add_lead_time(arguments, options->config);
  add_config(arguments, options->config);
  return configured<ReportOptions>(options, report);
}

}  // namespace

const CommandInfo report_command{
    "report", "Report on a period: verdicts, alerts, charts, and what a crash would cost",
    "Examples:\n"
    "  vramtrack report                                          the last 24 hours of the store\n"
    "  vramtrack report --since 2026-01-02 --output incident.html\n"
    "  vramtrack report --set cost.usd-per-gpu-hour=2.5 --checkpoint-every 30min gpu.csv apps.csv\n"
    "Exit: 0 no leak, 1 a leak was found in the period and not withdrawn, whether or not an alert was due, 2 failed.",
    declare};

}  // namespace vramtrack::cli
