// simulate: runs the watch on a simulated machine, until the verdict's prediction has come true.
#include "cli/cmd_simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "cli/printer.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "core/median.hpp"
#include "core/units.hpp"
#include "live/notifications.hpp"
#include "live/pace.hpp"
#include "report/conclusion.hpp"
#include "report/conclusion_words.hpp"
#include "report/words.hpp"
#include "source/sim/find_scenario.hpp"
#include "source/sim/sim.hpp"
#include "source/sim/smi_csv.hpp"
#include "source/tick_reader.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kStatusTables = 8;  ///< in the whole run, if the table is not drawn in place
constexpr std::chrono::milliseconds kRedraw{100};

int list(Console& console) {
  std::string out;
  for (const sim::BuiltinScenario& builtin : sim::builtin_scenarios())
    out += fmt::format("{}  {}\n", fit(builtin.name, 24), builtin.help);
  console.write(out);
  return 0;
}

/// Why no further sample is taken.
enum class Stop : std::uint8_t { end_of_scenario, interrupt, time_is_up };

/// Simulated seconds per second; 0: as fast as possible.
double speed_of(const SimulateOptions& options, const sim::Scenario& scenario) {
  return options.within_s ? scenario.duration_s / *options.within_s : options.speed;
}

class Simulation {
 public:
  Simulation(const SimulateOptions& options, const Config& config, const sim::Scenario& scenario, Console& console)
      : options_(options),
        scenario_(scenario),
        console_(console),
        source_(sim::make_simulation(scenario, catalog_)),
        pipeline_(config, catalog_),
        printer_(pipeline_, console, options.json, true),
        pace_(speed_of(options, scenario), clock_) {
    silences_.configure(config.notify);
    if (options.notify)
      notifier_ = open_notifier(config, {}, scenario.name, time_of_day,
                                [&console](const std::string& text) { console.warn(text); });
    if (notifier_)
      pipeline_.listen(notifying(*notifier_, silences_, [this](const auto& text) { printer_.warn(text); }));
    Listener listener;
    listener.alert = [this](const AlertNotice& notice) { remember(notice); };
    pipeline_.listen(std::move(listener));
    printer_.listen();
  }

  int run() {
    auto csv = SmiCsv::create(options_.csv, options_.process_csv);
    if (!csv) return failed(csv.error());
    if (!options_.json) introduce();
    const SteadyTime end =
        options_.duration_s
            ? clock_.steady() + std::chrono::duration_cast<SteadyTime::duration>(from_seconds(*options_.duration_s))
            : SteadyTime::max();
    TickTaker taker;
    taker.wait = [&](const Tick& tick) {
      if (pace_.wait_for(tick.time)) return true;
      stop_ = Stop::interrupt;
      return false;
    };
    taker.begin_anew = [&](const Tick& tick) { pipeline_.begin_anew(tick.time); };
    taker.take = [&](const Tick& tick) {
      if (!begin_) begin_ = tick.time;
      last_ = tick.time;
      csv->write(tick.batch, catalog_);
      pipeline_.take(tick.batch);
      for (const Event& event : tick.batch.events) notice_oom(event);
      note_prediction(tick.time);
      show_progress(tick.time);
      if (options_.once || clock_.steady() >= end) {
        stop_ = Stop::time_is_up;
        return false;
      }
      return !console_.gone() && !(oom_ && alert_);
    };
    if (const TicksRead read = read_ticks(*source_, taker); read.broken) return failed(*read.broken);
    if (stop_ == Stop::end_of_scenario && !console_.gone()) pipeline_.end_of_recording();
    // After the OOM, the table would show the remains rather than the prediction.
    if (!oom_ || options_.json || options_.explain) printer_.last_status(options_.explain);
    // --notify is for testing the receivers, so the exit code shows whether they were reached.
    const bool is_sent =
        !options_.notify ||
        (notifier_ && finish_notifications(*notifier_, false, [this](const auto& text) { console_.warn(text); }));
    if (!options_.json && !options_.once) summarise();
    if (Status ok = csv->close(); !ok) return failed(ok.error());
    return is_sent ? 0 : 1;
  }

 private:
  int failed(const Error& error) {
    console_.error("cannot simulate: " + error.message);
    return 2;
  }

  void introduce() {
    const double speed = speed_of(options_, scenario_);
    const std::string pace = pace_.is_paced()
                                 ? fmt::format("{:g} times as fast as real time; it ends by itself within {}", speed,
                                               format_duration(scenario_.duration_s / speed))
                                 : "as fast as possible; it ends by itself";
    console_.write_prose(fmt::format("{}: {}\n{} of simulated time, a sample every {}, {}\n\n", scenario_.name,
                                     scenario_.help, format_duration(scenario_.duration_s),
                                     format_duration(scenario_.period_s), pace));
  }

  /// Keeps the first alert that predicts when memory runs out; later predictions are kept in `foretold_`.
  void remember(const AlertNotice& notice) {
    if (notice.news == AlertNews::cleared || !notice.alert.finding.leak) return;
    if (!alert_ || (!alert_->finding.oom_in_s && notice.alert.finding.oom_in_s)) alert_ = notice.alert;
  }

  /// Records the verdict's predictions, once per simulated minute.
  void note_prediction(Timestamp time) {
    if (!alert_ || oom_ || (!foretold_.empty() && seconds_between(foretold_.back().time, time) < kSecondsPerMinute))
      return;
    const auto view = pipeline_.view();
    for (const SeriesView& s : view->series)
      if (s.id == alert_->series && s.verdict.finding.leak && s.verdict.finding.oom_in_s)
        foretold_.push_back({time, *s.verdict.finding.oom_in_s});
  }

  void notice_oom(const Event& event) {
    if (oom_ || event.kind != Event::Kind::process_ended || !(event.ran_out_of_memory || event.killed_by_host)) return;
    oom_ = event.time;
    if (options_.json) return;
    const ProcessInfo* process = catalog_.process({event.pid, event.pid_start_ticks, event.host});
    const LocalTimes local = console_.local_times();
    printer_.print(fmt::format("{}  {}  pid {} {}: {}\n", format_moment(event.time, catalog_.clock_is_relative),
                               toned("OOM", Tone::warning, console_.style()), event.pid,
                               process == nullptr ? "" : printable(process->command),
                               event.killed_by_host ? "the host's memory ran out, and the kernel ended the process"
                                                    : "the simulated process ran out of memory and ended"));
  }

  void show_progress(Timestamp time) {
    if (options_.json) return;
    if (console_.is_terminal() && pace_.is_paced()) {
      const SteadyTime now = clock_.steady();
      if (now < next_draw_) return;
      next_draw_ = now + kRedraw;
      printer_.status();
    } else if (!console_.is_terminal() && seconds_between(*begin_, time) >= next_table_s_) {
      next_table_s_ += scenario_.duration_s / kStatusTables;
      printer_.status();
    }
  }

  /// "1h 05m into the simulation"
  [[nodiscard]] std::string into(Timestamp time) const {
    return format_duration(seconds_between(*begin_, time)) + " in";
  }

  void summarise() {
    if (!begin_) return;
    std::string out = fmt::format("\nsimulated {} ({} samples): {}\n", format_duration(seconds_between(*begin_, last_)),
                                  pipeline_.counts().samples, alert_counts(pipeline_.counts()));
    if (alert_) out += prediction();
    if (!alert_ && oom_) out += fmt::format("  memory ran out {}, and no alert had been raised\n", into(*oom_));
    if (scenario_.truth) out += truth(*scenario_.truth);
    if (!options_.csv.empty() || !options_.process_csv.empty())
      out += fmt::format("  wrote {}{}{}\n", options_.csv,
                         !options_.csv.empty() && !options_.process_csv.empty() ? " and " : "", options_.process_csv);
    printer_.print(out);
  }

  [[nodiscard]] std::string_view why_not_yet() const {
    switch (stop_) {
      case Stop::interrupt:
        return "you stopped the simulation";
      case Stop::time_is_up:
        return "the time given by --duration has elapsed";
      case Stop::end_of_scenario:
        return "the simulation ended first";
    }
    return "";
  }

  [[nodiscard]] std::string prediction() const {
    std::string out =
        fmt::format("  alert      {}: {}, probability of a leak {}\n", into(alert_->raised),
                    alert_words(*alert_, kSecondsAndBytes).what, format_percent(alert_->finding.confidence));
    if (!alert_->finding.oom_in_s) return out;
    const Interval& eta = *alert_->finding.oom_in_s;
    out += fmt::format("  predicted  out of memory in {}\n", format_eta(eta));
    if (!oom_) return out + fmt::format("  happened   not yet: {}\n", why_not_yet());
    const double took_s = seconds_between(alert_->raised, *oom_);
    out += fmt::format("  happened   after {}: {}\n", format_eta({took_s, took_s, took_s}),
                       is_within(eta, took_s) ? eta.low == eta.high ? "as predicted" : "within the predicted interval"
                       : took_s < eta.low     ? "before the predicted interval"
                                              : "after the predicted interval");
    return out + all_predictions();
  }

  /// There is only one sample per period, so no prediction can be more exact than that.
  [[nodiscard]] bool is_within(const Interval& eta, double took_s) const {
    const double tolerance_s = 2 * scenario_.period_s;
    return took_s >= eta.low - tolerance_s && took_s <= eta.high + tolerance_s;
  }

  /// Evaluates all predictions until the end, not only the first.
  [[nodiscard]] std::string all_predictions() const {
    std::size_t within = 0;
    std::vector<double> errors;
    for (const Foretold& foretold : foretold_) {
      const double took_s = seconds_between(foretold.time, *oom_);
      if (took_s <= 0) continue;
      if (is_within(foretold.oom_in_s, took_s)) ++within;
      errors.push_back(std::abs(foretold.oom_in_s.mid - took_s) / took_s);
    }
    if (errors.size() < 2) return {};
    return fmt::format("  per minute {} of {} predictions within their interval; median error {:.1f} %\n", within,
                       errors.size(), 100 * upper_median(std::span(errors)));
  }

  [[nodiscard]] std::string truth(const sim::Truth& truth) const {
    if (!truth.leak)
      return fmt::format("  in truth   no leak{}\n", alert_                          ? ": the alert was a false alarm"
                                                     : has_leaked(*pipeline_.view()) ? ", but one was reported"
                                                                                     : ", and none was reported");
    std::string out = fmt::format("  in truth   {}", pattern_words(truth.pattern));
    if (truth.onset_s) out += fmt::format(" from {} in", format_duration(*truth.onset_s));
    if (truth.suspect_pid) out += fmt::format(", by pid {}", *truth.suspect_pid);
    if (alert_) return out + '\n';
    return out + (has_leaked(*pipeline_.view()) ? ": found, and no alert was due yet\n" : ": not found\n");
  }

  const SimulateOptions& options_;
  const sim::Scenario& scenario_;
  Console& console_;
  Catalog catalog_;
  std::unique_ptr<Source> source_;
  Silences silences_{""};
  std::unique_ptr<act::Notifier> notifier_;  ///< declared before the pipeline, which uses it until its end
  Pipeline pipeline_;
  Printer printer_;
  const Clock clock_ = machine_clock();
  Pace pace_;
  std::optional<Timestamp> begin_;
  Timestamp last_{};
  std::optional<Alert> alert_;
  struct Foretold {
    Timestamp time;
    Interval oom_in_s;
  };
  std::vector<Foretold> foretold_;  ///< one per simulated minute
  std::optional<Timestamp> oom_;
  Stop stop_ = Stop::end_of_scenario;
  SteadyTime next_draw_{};
  double next_table_s_ = 0;
};

}  // namespace

int simulate(const SimulateOptions& options, const LayeredConfig& layers, Console& console) {
  if (options.list) return list(console);
  if (options.within_s && options.speed > 0) {
    console.error("--speed and --within cannot be combined: both set the speed");
    return 2;
  }
  auto scenario =
      find_scenario(options.scenario.empty() ? std::string(sim::builtin_scenarios().front().name) : options.scenario);
  if (!scenario) {
    console.error("cannot simulate: " + scenario.error().message);
    return 2;
  }
  if (options.seed) scenario->seed = *options.seed;
  if (options.notify && !act::notifies(layers.config().notify)) {
    console.error("--notify: no receiver is configured; set notify.webhook, notify.slack or notify.exec");
    return 2;
  }
  return Simulation(options, layers.config(), *scenario, console).run();
}

namespace {

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<SimulateOptions>();
  arguments
      .operand("SCENARIO", "A built-in scenario or a TOML file (default: leaking_training)", text(options->scenario))
      .file()
      .completes(scenario_names());
  arguments.flag("--list", "List the built-in scenarios", options->list);
  add_speed(arguments, options->speed, kSpeedHelp);
  arguments.option("--within", "DURATION", "Choose the speed so that the whole simulation takes this long",
                   duration(options->within_s));
  add_seed(arguments, options->seed, "Random seed (default: the scenario's)");
  arguments.option("--csv", "FILE", "Also write the device samples as an nvidia-smi log", file_to_write(options->csv))
      .file()
      .in_manual("Its times are in UTC and marked as such.");
  arguments
      .option("--process-csv", "FILE", "Also write the process samples as an nvidia-smi log",
              file_to_write(options->process_csv))
      .file()
      .in_manual("Its times are in UTC and marked as such.");
  arguments.flag("--notify", "Send the simulated alerts to the receivers of [notify], marked as simulated",
                 options->notify);
  add_json(arguments, options->json);
  arguments.flag("--explain", "Show every figure behind the last verdicts", options->explain);
  add_detector(arguments, options->config);
  add_lead_time(arguments, options->config);
  add_config(arguments, options->config);
  return until_interrupted(configured<SimulateOptions>(options, simulate));
}

}  // namespace

const CommandInfo simulate_command{"simulate", "Watch a simulated machine until the prediction comes true",
                                   "Examples:\n"
                                   "  vramtrack simulate                              a training job that leaks\n"
                                   "  vramtrack simulate --list\n"
                                   "  vramtrack simulate leaking_training --within 20s\n"
                                   "  vramtrack simulate my.toml --seed 3 --csv gpu.csv && vramtrack analyze gpu.csv\n"
                                   "Exit: 0 simulated, 1 with --notify: a notification failed, 2 failed.",
                                   declare};

}  // namespace vramtrack::cli
