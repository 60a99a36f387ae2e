// analyze: whole recordings, one verdict per series. The output's contract is docs/formats/analysis.md.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/commands.hpp"
#include "cli/gpu_choice.hpp"
#include "cli/moment.hpp"
#include "cli/output_option.hpp"
#include "cli/progress.hpp"
#include "cli/recorded.hpp"
#include "cli/run_history.hpp"
#include "cli/shared_arguments.hpp"
#include "engine/engine.hpp"
#include "live/clock.hpp"
#include "report/conclusion.hpp"
#include "report/report.hpp"
#include "source/tick_reader.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNoLeak = 0;
constexpr int kLeak = 1;
constexpr int kFailed = 2;

struct AnalyzeOptions {
  ConfigRequest config;
  std::vector<std::string> files;
  std::vector<std::string> history;
  std::string format = "text";
  bool explain = false;
  std::vector<std::string> gpus;
  PeriodArguments period;
  LogArguments logs;
};

/// Reads one recording to its end. Data read before a failure is still judged, unless the failure shows that it was
/// misunderstood.
class Analysis {
 public:
  Analysis(const AnalyzeOptions& options, const Config& config, TimeRange range, const RunHistory& history,
           Console& console)
      : options_(options), config_(config), range_(range), history_(history), console_(console) {}

  int run(const RecordedPart& recording) {
    const std::vector<std::string>& files = recording.files;
    Catalog catalog;
    auto source = recording.open(catalog);
    if (!source) return failed(files, source.error().message);
    RunHistory history = history_;  // each recording starts with the same history
    std::optional<Engine> engine;
    const auto begin = [&] {
      engine.emplace(config_, catalog);
      if (!options_.history.empty()) engine->remember(history.memory());
    };
    begin();
    View view;
    const auto keep_view = [&] { view = after(std::move(view), *engine->view(options_.explain)); };
    TickTaker taker;
    taker.begin_anew = [&](const Tick&) {
      engine->finish();
      keep_view();
      begin();
    };
    taker.take = [&](const Tick& tick) {
      engine->ingest(tick.batch);
      return true;
    };
    const TicksRead read = read_ticks(**source, taker, range_);
    const std::optional<Error>& broken = read.broken;
    if (broken && broken->voids_earlier) return failed(files, broken->message);
    recording.is_closed() && read.at_end ? engine->end_of_recording() : engine->finish();
    keep_view();
    const SourceNotes& notes = (*source)->notes();
    view.files = files;
    view.skipped_lines = notes.skipped_lines;
    view.first_skipped = notes.first_skipped;
    view.warnings.insert(view.warnings.begin(), notes.warnings.begin(), notes.warnings.end());
    if (view.series.empty()) {
      const LocalTimes local = console_.local_times();
      return failed(files,
                    broken ? broken->message : nothing_usable(notes, range_, outside_period(read, range_, catalog)));
    }
    const auto view_of = [](const SeriesView& s) -> const SeriesView& { return s; };
    if (const Status kept = keep_gpus(view.series, options_.gpus, view_of); !kept)
      return failed(files, kept.error().message);
    if (options_.format == "text" && printed_) console_.write("\n");
    printed_ = true;
    const ReportInfo& form = *find_report(options_.format);
    if (options_.format == "text") {
      const LocalTimes local = console_.local_times();
      console_.write_prose(form.render(view, console_.style()));
    } else {
      console_.write(form.render(view, console_.style()));
    }
    if (broken) return failed(files, broken->message + "; the samples before that were judged");
    return has_leaked(view) ? kLeak : kNoLeak;
  }

  int failed(const std::vector<std::string>& files, const std::string& why) {
    console_.error(fmt::format("cannot read {}: {}", joined(files), why));
    return kFailed;
  }

 private:
  /// A later watch in a store replaces what an earlier one reported about a series, but the earlier alerts are kept.
  static View after(View earlier, View later) {
    for (SeriesView& was : earlier.series) {
      const auto is =
          std::find_if(later.series.begin(), later.series.end(), [&](const SeriesView& s) { return s.key == was.key; });
      if (is == later.series.end())
        later.series.push_back(std::move(was));
      else
        for (auto all : {&SeriesView::alerts, &SeriesView::suspicions})
          ((*is).*all).insert(((*is).*all).begin(), (was.*all).begin(), (was.*all).end());
    }
    later.notices.insert(later.notices.begin(), earlier.notices.begin(), earlier.notices.end());
    return later;
  }

  static std::string nothing_usable(const SourceNotes& notes, const TimeRange& range, const std::string& outside) {
    std::string why = "it contains no usable samples";
    if (range.from || range.to) why += " between --since and --until" + outside;
    if (notes.skipped_lines > 0)
      why += fmt::format(" ({} line{} skipped", notes.skipped_lines, notes.skipped_lines == 1 ? "" : "s");
    if (!notes.first_skipped.empty()) why += ", the first: " + notes.first_skipped.front();
    if (notes.skipped_lines > 0) why += ')';
    for (const std::string& warning : notes.warnings) why += "; " + warning;
    return why + (outside.empty() ? "; check that this is the right file, or name its format with --input-format"
                                  : "; give another period");
  }

  const AnalyzeOptions& options_;
  const Config& config_;
  TimeRange range_;
  const RunHistory& history_;
  Console& console_;
  bool printed_ = false;
};

/// One unreadable file must not prevent verdicts on the others: it is reported, and the rest is planned without it.
Result<std::vector<RecordedPart>> plan_readable(const std::vector<std::string>& files, const RecordedOptions& options,
                                                Console& console, int& exit_code) {
  const RecordedInfo& kind = recorded_at(files.front());
  const auto plan = [&](const std::vector<std::string>& some) -> Result<std::vector<RecordedPart>> {
    for (const std::string& file : some)
      if (const Status other = refuse_trace(file); !other) return fail(other.error());
    return plan_recorded(kind, some, options);
  };
  auto all = plan(files);
  if (all || files.size() == 1 || files.size() > kind.most_files) return all;
  std::vector<std::string> readable;
  for (const std::string& file : files) {
    // Standard input can be read only once.
    if (file == "-") return all;
    if (const auto alone = plan({file}); alone)
      readable.push_back(file);
    else
      console.error("cannot read the logs: " + alone.error().message);
  }
  // Each file is readable on its own, so the fault is in how they are combined.
  if (readable.size() == files.size()) return all;
  exit_code = kFailed;
  if (readable.empty()) return std::vector<RecordedPart>{};
  return plan(readable);
}

int analyze(const AnalyzeOptions& options, const LayeredConfig& layers, Console& console) {
  const auto logs = log_options(options.logs);
  const auto range = time_range(options.period, options.logs.timezone, time_of_day());
  if (!logs || !range) {
    console.error(!logs ? logs.error().message : range.error().message);
    return kFailed;
  }
  int exit_code = kNoLeak;
  const Progress progress(console, options.files);
  auto recordings = plan_readable(options.files, {*logs, *range}, console, exit_code);
  if (!recordings) {
    console.error("cannot read the logs: " + recordings.error().message);
    return kFailed;
  }
  RunHistory history;
  if (const Status read = history.read(options.history, {*logs, {}}, layers.config()); !read) {
    console.error("cannot read --history: " + read.error().message);
    return kFailed;
  }
  Analysis analysis(options, layers.config(), *range, history, console);
  for (const RecordedPart& recording : *recordings) {
    exit_code = std::max(exit_code, analysis.run(recording));
    if (console.gone()) break;
  }
  return exit_code;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<AnalyzeOptions>();
  arguments
      .operands("FILE", "Logs, also .gz and .zst; - is standard input (default, if it is a pipe or a file)",
                text(options->files))
      .required()
      .or_stdin()
      .file();
  const std::vector<std::string> formats = names_of(reports());
  arguments.format(formats, "Print as: " + joined(formats) + " (default text)", text(options->format));
  arguments.flag("--explain", "Show every figure behind the verdict", options->explain);
  arguments
      .repeated("--history", "FILE", "An earlier recording, whose runs of the same programs help to judge new ones",
                text(options->history))
      .file()
      .in_manual(
          "Device logs and process logs from the same period are joined; a store is accepted, too. May be given "
          "several "
          "times. Without this option, a recording is judged on its own: the store is never read.");
  add_gpus(arguments, options->gpus);
  add_period(arguments, options->period);
  add_detector(arguments, options->config);
  add_lead_time(arguments, options->config);
  add_log_arguments(arguments, options->logs);
  add_config(arguments, options->config);
  return with_output(arguments, configured<AnalyzeOptions>(options, analyze));
}

}  // namespace

const CommandInfo analyze_command{
    "analyze", "Judge logs: whether memory leaked, how fast, which process leaked and why",
    "Examples:\n"
    "  vramtrack analyze gpu.csv                        also: vramtrack gpu.csv\n"
    "  nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total,utilization.gpu --format=csv -l 5 >gpu.csv   "
    "writes such a log\n"
    "  vramtrack analyze gpu.csv apps.csv               joins a device log and a process log\n"
    "  vramtrack analyze --history monday.csv --history tuesday.csv today.csv\n"
    "  vramtrack analyze --capacity 24GiB --format json old.log.gz\n"
    "  vramtrack analyze --detector composite --set min-r-squared=0.8 gpu.csv\n"
    "Exit: 0 no leak, 1 a leak was found and not withdrawn, 2 failed.",
    declare};

}  // namespace vramtrack::cli
