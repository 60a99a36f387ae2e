// replay: runs a store or logs through the same engine as a live watch, at the recorded times.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/moment.hpp"
#include "cli/output_option.hpp"
#include "cli/printer.hpp"
#include "cli/progress.hpp"
#include "cli/recorded.hpp"
#include "cli/run_history.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "host/interrupt.hpp"
#include "live/pace.hpp"
#include "report/conclusion.hpp"
#include "source/tick_reader.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNoLeak = 0;
constexpr int kLeak = 1;
constexpr int kFailed = 2;

struct ReplayOptions {
  ConfigRequest config;
  std::vector<std::string> files;
  PeriodArguments period;
  double speed = 0;  ///< 0: as fast as possible
  bool json = false;
  bool explain = false;
  LogArguments logs;
};

class Replay {
 public:
  Replay(const ReplayOptions& options, const Config& config, TimeRange range, Console& console)
      : options_(options), config_(config), range_(range), console_(console) {}

  /// `programs`: those that the recording's store remembers.
  int run(Source& source, Catalog& catalog, const RecordedPart& part, std::vector<Program> programs) {
    const std::string what = fmt::format("{}", fmt::join(part.files, ", "));
    leaked_ = false;
    Pipeline pipeline(config_, catalog);
    RunHistory history = RunHistory::of_store(std::move(programs), [this] { return now_; });
    if (history.knows_any() && config_.watch.experience) memory_ = history.memory();
    pipeline.remember(memory_);
    if (part.is_closed()) pipeline.set_files(part.files);
    Printer printer(pipeline, console_, options_.json, false);
    printer.listen();
    const Clock clock = machine_clock();
    Pace pace(options_.speed, clock);
    std::optional<Timestamp> first;
    Timestamp last{};
    auto next_status = clock.steady();
    const auto every = from_seconds(config_.watch.status_every_seconds);
    std::set<std::string> reported;
    TickTaker taker;
    taker.wait = [&](const Tick& tick) {
      report_new(source.notes(), reported, [&](const std::string& text) { printer.warn(text); });
      if (!pace.wait_for(tick.time)) return false;
      if (!first) first = tick.time;
      now_ = last = tick.time;
      note_watches(tick, pipeline);
      return true;
    };
    taker.begin_anew = [&](Tick& tick) { begin_anew(tick, pipeline, printer); };
    taker.take = [&](const Tick& tick) {
      pipeline.take(tick.batch);
      if (pace.is_paced() && clock.steady() >= next_status) {
        printer.status();
        next_status += every;
      }
      return !console_.gone();
    };
    const TicksRead read = read_ticks(source, taker, range_);
    report_new(source.notes(), reported, [&](const std::string& text) { printer.warn(text); });
    const std::string broken = read.broken ? read.broken->message : std::string();
    warn_of_skipped(source.notes());
    if (!broken.empty()) console_.error(fmt::format("cannot replay all of {}: {}", what, broken));
    if (!first) {
      const LocalTimes local = console_.local_times();
      if (broken.empty())
        console_.error(fmt::format("nothing to replay: {} has no sample{}{}; choose another range or file", what,
                                   range_.from || range_.to ? " between --since and --until" : "",
                                   outside_period(read, range_, catalog)));
      return kFailed;
    }
    if (part.is_closed() && read.at_end) pipeline.end_of_recording();
    leaked_ |= has_leaked(*pipeline.view());
    printer.last_status(options_.explain);
    if (!options_.json)
      printer.print(fmt::format("replayed {} of {}: {} sample{}, {}\n",
                                catalog.scale.duration(seconds_between(*first, last)), printable(what),
                                pipeline.counts().samples, pipeline.counts().samples == 1 ? "" : "s",
                                alert_counts(pipeline.counts())));
    return !broken.empty() ? kFailed : leaked_ ? kLeak : kNoLeak;
  }

 private:
  /// A watch that began without knowledge does so in the replay, too; one that continued the previous one continues it.
  void note_watches(const Tick& tick, Pipeline& pipeline) const {
    for (const Event& event : tick.batch.events)
      if (event.kind == Event::Kind::watch_started) pipeline.remember(event.knew_runs ? memory_ : std::nullopt);
  }

  void begin_anew(Tick& tick, Pipeline& pipeline, Printer& printer) {
    if (!pipeline.view()->series.empty()) printer.last_status(options_.explain);
    leaked_ |= has_leaked(*pipeline.view());
    pipeline.begin_anew(tick.time);
    printer.forget_shown();
    if (pipeline.counts().samples > 0) tick.batch.events.front().text = "a new recording starts here";
  }

  void warn_of_skipped(const SourceNotes& notes) {
    for (const std::string& skipped : notes.first_skipped) console_.warn("skipped " + skipped);
    if (notes.skipped_lines > notes.first_skipped.size())
      console_.warn(fmt::format("skipped {} line{} in total; 'vramtrack analyze' with the same file reports them",
                                notes.skipped_lines, notes.skipped_lines == 1 ? "" : "s"));
  }

  const ReplayOptions& options_;
  const Config& config_;
  TimeRange range_;
  Console& console_;
  Timestamp now_{};                      ///< time of the tick being replayed
  bool leaked_ = false;                  ///< in any watch of the recording so far
  std::optional<ProgramMemory> memory_;  ///< empty: the recording has none
};

int replay(const ReplayOptions& options, const LayeredConfig& layers, Console& console) {
  const auto range = time_range(options.period, options.logs.timezone, time_of_day());
  const auto logs = log_options(options.logs);
  if (!range || !logs) {
    console.error(!range ? range.error().message : logs.error().message);
    return kFailed;
  }
  const auto chosen = files_or_store(options.files, layers.config().store);
  if (!chosen) {
    console.error("cannot replay: " + chosen.error().message);
    return kFailed;
  }
  const std::vector<std::string>& files = *chosen;
  std::optional<Progress> progress;
  if (options.speed == 0) progress.emplace(console, files);
  Replay replay(options, layers.config(), *range, console);
  const auto kind = recorded_kind(options.files);
  if (!kind) {
    console.error("cannot replay: " + kind.error().message);
    return kFailed;
  }
  auto parts = plan_recorded(**kind, files, {*logs, *range});
  if (!parts) {
    // A file of unknown format may be a store with damaged first bytes.
    std::error_code ec;
    const bool unknown = files.size() == 1 && options.logs.format.empty() && options.logs.timezone.empty() &&
                         std::filesystem::is_regular_file(files.front(), ec) &&
                         std::filesystem::file_size(files.front(), ec) > 0;
    console.error(fmt::format("cannot replay{}: {}", unknown ? ", because this is neither a log nor a store" : "",
                              parts.error().message));
    return kFailed;
  }
  int exit_code = kNoLeak;
  for (const RecordedPart& part : *parts) {
    Catalog catalog;
    auto source = part.open(catalog);
    if (!source) {
      console.error("cannot replay: " + source.error().message);
      exit_code = kFailed;
      continue;
    }
    std::vector<Program> programs;
    if (!part.store_path.empty())
      if (const auto reader = StoreReader::open(part.store_path))
        if (auto known = (*reader)->programs()) programs = std::move(*known);
    exit_code = std::max(exit_code, replay.run(**source, catalog, part, std::move(programs)));
    if (console.gone() || Interrupt::requested()) break;
  }
  return exit_code;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<ReplayOptions>();
  arguments.operands("FILE", "A store, or logs as for analyze (default: this user's store)", text(options->files))
      .file();
  add_period(arguments, options->period);
  add_speed(arguments, options->speed, kSpeedHelp);
  add_every(arguments, options->config, "With --speed: time between two status tables (default 10s)");
  add_json(arguments, options->json);
  arguments.flag("--explain", "Show every figure behind the last verdicts", options->explain);
  add_log_arguments(arguments, options->logs);
  add_detector(arguments, options->config);
  add_lead_time(arguments, options->config);
  add_config(arguments, options->config);
  // A command that still waits for standard input has shown nothing to sum up, so a signal ends it there.
  Runner plain = configured<ReplayOptions>(options, replay);
  return with_output(arguments, [options, plain, graceful = until_interrupted(plain)](Console& console) {
    const bool waits = std::find(options->files.begin(), options->files.end(), "-") != options->files.end();
    return waits ? plain(console) : graceful(console);
  });
}

}  // namespace

const CommandInfo replay_command{"replay", "Replay a recording, with the verdicts that the live watch gave",
                                 "Examples:\n"
                                 "  vramtrack replay --since 8h              the last eight hours\n"
                                 "  vramtrack replay --speed 600 old.db     ten minutes per second\n"
                                 "  vramtrack replay gpu.csv                a log instead of a store\n"
                                 "Exit: 0 no leak, 1 a leak was found and not withdrawn, 2 failed.",
                                 declare};

}  // namespace vramtrack::cli
