// watch: poll, record, judge, print; until interrupted or the time is up.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "agent/client.hpp"
#include "cli/cmd_simulate.hpp"
#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "host/interrupt.hpp"
#include "live/notifications.hpp"
#include "live/sources.hpp"
#include "source/source.hpp"
#include "store/store.hpp"

namespace vramtrack::cli {
namespace {

using std::chrono::steady_clock;

struct WatchOptions {
  ConfigRequest config;
  bool json = false;
  bool once = false;
  bool or_simulate = false;
  std::optional<double> duration_s;
};

/// Somebody who watches beside an agent may not know of it.
void tell_of_agent(const AgentConfig& config, Console& console) {
  const auto socket = agent::find_agent(config);
  if (!socket) return;
  const auto agent = agent::AgentClient(*socket).version();
  if (!agent) return;
  console.warn(
      fmt::format("an agent {} since {} (pid {}, {}): 'vramtrack top' shows what it sees",
                  agent->simulated.empty() ? "watches this machine" : "runs the simulation " + agent->simulated,
                  iso8601(std::chrono::floor<std::chrono::seconds>(agent->started)), agent->pid, *socket));
}

class Watch {
 public:
  Watch(const WatchOptions& options, const Config& config, Console& console, Catalog& catalog,
        std::vector<LiveSource> sources)
      : options_(options),
        config_(config),
        console_(console),
        sources_(std::move(sources)),
        session_(config, catalog, console, options.json, false, kMaxEndedSeries),
        start_(clock_.now()) {
    tell_of_agent(config.agent, console);
    if (config.watch.record) open_store(catalog);
    session_.on_alert([this](const AlertChange& change) {
      if (store_) tell_store(store_->record(change.alert));
    });
    open_notifications();
  }

  int run() {
    const auto interval =
        std::chrono::duration_cast<steady_clock::duration>(from_seconds(config_.watch.interval_seconds));
    const auto every = from_seconds(config_.watch.status_every_seconds);
    const auto begin = steady_clock::now();
    std::optional<steady_clock::time_point> end;
    if (options_.duration_s)
      end = begin + std::chrono::duration_cast<steady_clock::duration>(from_seconds(*options_.duration_s));
    auto next_status = begin;
    for (auto deadline = begin; Interrupt::sleep_until(deadline);) {
      tick();
      const auto now = steady_clock::now();
      if (now >= next_status) {
        session_.status();
        next_status = std::max(next_status + every, now);
      }
      if (console_.gone() || options_.once) break;
      if (end && deadline >= *end) break;
      deadline = next_deadline(deadline, interval, now);
      if (end) deadline = std::min(deadline, *end);  // the last poll is at the end, not before it
    }
    finish();
    return 0;
  }

 private:
  void open_store(const Catalog& catalog) {
    StoreConfig store = config_.store;
    store.path = store_path(config_.store);
    auto opened = Store::open(store, catalog, start_);
    if (opened) {
      store_ = std::move(*opened);
      // A replay begins anew here, as this watch does.
      Batch started;
      started.events.push_back(Event{.time = start_, .kind = Event::Kind::watch_started});
      tell_store(store_->append(started));
    } else {
      console_.warn(fmt::format("not recording: {}; watching goes on without it (--no-record says so on purpose)",
                                opened.error().message));
    }
  }

  /// With --once nobody waits for an alert; what nothing is recorded of is not kept over a restart either.
  void open_notifications() {
    if (options_.once) return;
    notifier_ = open_notifier(config_, config_.watch.record ? store_path(config_.store) : std::string(), {},
                              [this](const std::string& text) { console_.warn(text); });
    if (!notifier_) return;
    session_.on_news([this](const View& view, const SeriesView& series, const Alert& alert, AlertNews news) {
      notifier_->tell(note_of(view, series, alert, news));
    });
  }

  void tick() {
    batch_.clear();
    const Timestamp now = clock_.now();
    if (clock_.take_set_back()) console_.warn(kClockSetBack);
    for (LiveSource& live : sources_) {
      poll_live(live, now, batch_, [this](const std::string& text) { console_.warn(text); });
      session_.tell_notes(live.source->notes(), live.told);
    }
    if (store_) {
      tell_store(store_->append(batch_));
      for (const std::string& notice : store_->take_notices()) console_.warn(notice);
    }
    session_.take(batch_);
    if (notifier_)
      for (const std::string& warning : notifier_->take_warnings()) console_.warn(warning);
  }

  /// The store itself says each cause once.
  void tell_store(const Status& status) {
    if (!status) console_.warn("recording: " + status.error().message);
  }

  void finish() {
    if (store_) tell_store(store_->flush());
    if (notifier_)
      finish_notifications(*notifier_, config_.watch.record, [this](const std::string& text) { console_.warn(text); });
    if (options_.once) return;
    session_.last_status(false);
    if (options_.json) return;
    std::string out =
        fmt::format("watched {}: {} samples of {} polls, {}", format_duration(seconds_between(start_, clock_.now())),
                    session_.counts().samples, session_.counts().ticks, alert_counts(session_.counts()));
    if (store_) out += fmt::format("; recorded into {}", store_->path());
    session_.print(out + '\n');
  }

  const Interrupt interrupt_;  ///< first: from here on a signal ends in a flush and a summary
  const WatchOptions& options_;
  const Config& config_;
  Console& console_;
  std::vector<LiveSource> sources_;
  Session session_;
  StampClock clock_;
  Timestamp start_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<act::Notifier> notifier_;
  Batch batch_;
};

int watch(const WatchOptions& options, const LayeredConfig& layers, Console& console) {
  const Config& config = layers.config();
  Catalog catalog;
  std::string reasons;
  std::vector<LiveSource> sources = open_live_sources(config.sources, catalog, reasons);
  if (sources.empty()) {
    tell_of_agent(config.agent, console);
    if (!options.or_simulate) {
      console.error(fmt::format(
          "no GPU to watch: {}; 'vramtrack doctor' says what to do, 'vramtrack simulate' needs no GPU", reasons));
      return 2;
    }
    console.write(
        fmt::format("No GPU to watch here ({}); showing a simulated training job that leaks instead.\n", reasons));
    SimulateOptions simulated;
    simulated.json = options.json;
    // Long enough to be read on a terminal; a log need not wait.
    if (console.is_terminal()) simulated.within_s = 20;
    return simulate(simulated, layers, console);
  }
  return Watch(options, config, console, catalog, std::move(sources)).run();
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
  add_sources(arguments, options->config);
  add_or_simulate(arguments, options->or_simulate);
  add_detector(arguments, options->config);
  add_config(arguments, options->config);
  return configured<WatchOptions>(options, watch);
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
