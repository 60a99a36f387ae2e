// watch: polls, records, judges and prints, until interrupted or until the time is up.
#include <fmt/ranges.h>

#include <chrono>
#include <memory>
#include <vector>

#include "agent/client.hpp"
#include "cli/cmd_simulate.hpp"
#include "cli/commands.hpp"
#include "cli/printer.hpp"
#include "cli/shared_arguments.hpp"
#include "cli/telemetry_source.hpp"
#include "core/format.hpp"
#include "host/privilege.hpp"
#include "live/loop.hpp"
#include "live/notifications.hpp"
#include "source/source.hpp"
#include "store/store.hpp"

namespace vramtrack::cli {
namespace {

struct WatchOptions {
  ConfigRequest config;
  bool json = false;
  bool once = false;
  bool or_simulate = false;
  std::optional<double> duration_s;
};

/// A user who starts a watch while an agent is running may not know about the agent.
void warn_of_agent(const AgentConfig& config, Console& console) {
  const auto socket = agent::find_agent(config);
  if (!socket) return;
  const auto agent = agent::AgentClient(*socket).version();
  if (!agent) return;
  const LocalTimes local = console.local_times();
  console.warn(
      fmt::format("an agent {} since {} (pid {}, {}): 'vramtrack top' shows what it sees",
                  agent->simulated.empty() ? "watches this machine" : "runs the simulation " + agent->simulated,
                  format_moment(agent->started, false), agent->pid, *socket));
}

/// The given options that a simulation ignores, as a sentence; empty if there are none.
std::string without_effect(const ConfigRequest& request) {
  std::vector<std::string_view> names;
  for (const ConfigRequest::Override& o : request.overrides)
    if (o.option == "--interval" || o.option == "--every") names.push_back(o.option);
  if (names.empty()) return {};
  return fmt::format(" It runs at its own pace: {} {} not change it.", fmt::join(names, " and "),
                     names.size() == 1 ? "does" : "do");
}

class Watch {
 public:
  Watch(const WatchOptions& options, const Config& config, Console& console, LoopInput input)
      : options_(options),
        config_(config),
        console_(console),
        loop_(config, std::move(input), machine_clock()),
        printer_(loop_.pipeline(), console, options.json, false) {
    warn_of_agent(config.agent, console);
    open_notifications();
    printer_.listen();
    if (config.watch.record) {
      StoreConfig store = config.store;
      store.path = store_path(config.store);
      loop_.record_into(store);
    }
  }

  int run() {
    const auto span = [](double s) { return std::chrono::duration_cast<SteadyTime::duration>(from_seconds(s)); };
    const SteadyTime begin = loop_.next();
    const SteadyTime end = options_.duration_s ? begin + span(*options_.duration_s) : SteadyTime::max();
    SteadyTime next_status = begin;
    // The last poll is at the end, not before it.
    while (loop_.clock().sleep_until(std::min(loop_.next(), end))) {
      const SteadyTime due = std::min(loop_.next(), end);
      loop_.tick();
      if (const SteadyTime now = loop_.clock().steady(); now >= next_status) {
        printer_.status();
        next_status = std::max(next_status + span(config_.watch.status_every_seconds), now);
      }
      if (console_.gone() || options_.once || due >= end) break;
    }
    finish();
    return 0;
  }

 private:
  /// With --once nobody waits for an alert; if nothing is recorded, notifications do not survive a restart either.
  void open_notifications() {
    if (options_.once) return;
    silences_.configure(config_.notify);
    notifier_ = open_notifier(config_, config_.watch.record ? store_path(config_.store) : std::string(), {},
                              time_of_day, [this](const std::string& text) { console_.warn(text); });
    if (notifier_)
      loop_.pipeline().listen(notifying(*notifier_, silences_, [this](const auto& text) { printer_.warn(text); }));
  }

  void finish() {
    loop_.finish();
    if (notifier_)
      finish_notifications(*notifier_, config_.watch.record, [this](const std::string& text) { console_.warn(text); });
    if (options_.once) return;
    printer_.last_status(false);
    if (options_.json) return;
    const Pipeline::Counts& counts = loop_.pipeline().counts();
    std::string out =
        fmt::format("watched {}: {} sample{} of {} poll{}, {}",
                    format_duration(seconds_between(loop_.started(), loop_.now())), counts.samples,
                    counts.samples == 1 ? "" : "s", counts.ticks, counts.ticks == 1 ? "" : "s", alert_counts(counts));
    if (const Store* store = loop_.pipeline().store()) out += fmt::format("; recorded into {}", store->path());
    printer_.print(out + '\n');
  }

  const WatchOptions& options_;
  const Config& config_;
  Console& console_;
  Silences silences_{config_.watch.record ? silences_path(store_path(config_.store)) : std::string()};
  std::unique_ptr<act::Notifier> notifier_;  ///< declared before the loop, which uses it until its end
  Loop loop_;
  Printer printer_;
};

int watch(const WatchOptions& options, const LayeredConfig& layers, Console& console) {
  keep_capabilities();
  const Config& config = layers.config();
  LoopInput input;
  input.catalog = std::make_unique<Catalog>();
  std::string reasons;
  input.sources = open_live_sources(config.sources, *input.catalog, reasons);
  if (input.sources.empty()) {
    warn_of_agent(config.agent, console);
    if (!options.or_simulate) {
      console.error(no_gpu_to_watch("watch", reasons));
      return 2;
    }
    SimulateOptions simulated;
    simulated.json = options.json;
    simulated.once = options.once;
    simulated.duration_s = options.duration_s;
    // Slow enough to be read on a terminal; a log has no need to wait.
    if (console.is_terminal()) simulated.within_s = 20;
    const std::string announcement =
        fmt::format("No GPU to watch here ({}); showing a simulated training job that leaks instead.{}", reasons,
                    without_effect(options.config));
    if (options.json)
      console.warn(announcement);
    else
      console.write_prose(announcement + '\n');
    return simulate(simulated, layers, console);
  }
  if (config.telemetry.enabled) input.sources.push_back({.name = kTelemetrySource, .source = open_telemetry()});
  return Watch(options, config, console, std::move(input)).run();
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<WatchOptions>();
  add_json(arguments, options->json);
  arguments.flag("--once", "Take one sample, print it and end", options->once);
  add_interval(arguments, options->config);
  arguments.option("--duration", "DURATION", "End after this time (default: run until interrupted)",
                   duration(options->duration_s));
  add_every(arguments, options->config, "Time between two status tables (default 10s)");
  add_no_record(arguments, options->config, "Do not record into the store");
  add_no_experience(arguments, options->config);
  add_telemetry(arguments, options->config);
  add_sources(arguments, options->config);
  add_or_simulate(arguments, options->or_simulate);
  add_detector(arguments, options->config);
  add_lead_time(arguments, options->config);
  add_config(arguments, options->config);
  return until_interrupted(configured<WatchOptions>(options, watch));
}

}  // namespace

const CommandInfo watch_command{"watch",
                                "Watch this machine's GPUs, record them, and print an alert as soon as something leaks",
                                "Examples:\n"
                                "  vramtrack watch                       watch and record until Ctrl-C\n"
                                "  vramtrack watch --once --no-record    what is on the GPUs now\n"
                                "  vramtrack watch --json --every 1min   for a log collector\n"
                                "Exit: 0 ended, 2 nothing to watch.",
                                declare};

}  // namespace vramtrack::cli
