// top: the screens of src/tui over a live watch, a recording or a simulation, until q.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/acknowledgements.hpp"
#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/recorded.hpp"
#include "host/held_process.hpp"
#include "host/interrupt.hpp"
#include "report/view_json.hpp"
#include "report/words.hpp"
#include "source/sim/find_scenario.hpp"
#include "source/sim/sim.hpp"
#include "top/draw.hpp"
#include "top/feed.hpp"
#include "top/rows.hpp"
#include "top/terminal.hpp"
#include "top/theme.hpp"

namespace vramtrack::cli {
using namespace vramtrack::top;

namespace {

using std::chrono::steady_clock;

/// Not more often than this, however fast a replay goes: nobody reads more, and a slow terminal would lag behind.
constexpr std::chrono::milliseconds kFrame{66};
/// Without anything due, keys are waited for so long at a time.
constexpr std::chrono::milliseconds kLongestWait{1000};
constexpr std::chrono::seconds kAcknowledgedEvery{1};

/// When this machine was started, by /proc/stat.
std::optional<Timestamp> boot_time(const std::string& proc_root) {
  std::ifstream in(proc_root + "/stat");
  for (std::string word; in >> word;) {
    std::int64_t s = 0;
    if (word == "btime" && in >> s) return Timestamp{std::chrono::seconds{s}};
  }
  return std::nullopt;
}

Timestamp now_of_clock() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

std::string user_name() {
  const char* user = std::getenv("USER");
  return user != nullptr && *user != '\0' ? std::string(user) : fmt::format("uid {}", ::getuid());
}

class Top {
 public:
  Top(const Options& options, const Config& config, TopSource source, const std::string& store, Console& console)
      : config_(config), console_(console), source_(std::move(source)) {
    model_.feed = source_.feed;
    model_.view = source_.view();
    model_.read_only = options.read_only;
    const char* no_colour = std::getenv("NO_COLOR");
    model_.no_colour = no_colour != nullptr && *no_colour != '\0';
    model_.ui.theme = std::max(0, top::find_theme(model_.no_colour ? "monochrome" : options.theme));
    if (!store.empty()) acknowledged_.emplace(agent::acknowledgements_path(store));
    source_.describe(model_);
    refresh_acknowledged();
    // A simulated process's start ticks have nothing to do with this machine's boot.
    if ((model_.mode == top::Mode::live || model_.mode == top::Mode::agent) && model_.simulated.empty())
      model_.boot = boot_time(config.sources.proc_root);
  }

  int run() {
    {
      auto terminal = top::Terminal::open();
      if (!terminal) {
        console_.error("cannot show the screens: " + terminal.error().message);
        return 2;
      }
      // After the terminal is set up: curses has its own idea of SIGINT.
      const Interrupt interrupt;
      loop(*terminal);
    }
    source_.finish();
    source_.describe(model_);
    // What was told on a screen that is gone now.
    for (const std::string& warning : model_.warnings) console_.warn(warning);
    return 0;
  }

 private:
  void loop(top::Terminal& terminal) {
    bool dirty = true;
    auto last_frame = steady_clock::time_point::min();
    while (!Interrupt::requested()) {
      bool changed = false;
      const auto next = source_.step(steady_clock::now(), changed);
      stale_ = stale_ || changed;
      dirty = refresh_acknowledged() || dirty;
      auto now = steady_clock::now();
      if ((dirty || stale_) && (dirty || now >= last_frame + kFrame)) {
        refresh();
        top::Screen screen(terminal.width(), terminal.height());
        top::draw(screen, model_);
        terminal.show(screen, top::themes()[static_cast<std::size_t>(model_.ui.theme)]);
        last_frame = now;
        dirty = false;
      }
      now = steady_clock::now();
      auto until = std::min(next, now + kLongestWait);
      if (stale_) until = std::min(until, last_frame + kFrame);
      const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(until - now);
      // Everything typed meanwhile is taken before the next drawing.
      for (auto key = terminal.key(std::max(wait, std::chrono::milliseconds{0})); key;
           key = terminal.key(std::chrono::milliseconds{0})) {
        if (on_key(*key, terminal)) return;
        dirty = true;
      }
    }
  }

  void refresh() {
    if (stale_ && !(model_.ui.paused && !model_.playback)) {
      model_.view = source_.view();
      stale_ = false;
    }
    source_.describe(model_);
    if (!model_.warnings.empty() && model_.warnings.back() != told_) {
      told_ = model_.warnings.back();
      if (model_.ui.message.empty()) model_.ui.message = told_;
    }
  }

  /// Those that others acknowledge meanwhile count, too: the file is shared by all programs on that store.
  /// True when something has changed.
  bool refresh_acknowledged() {
    const auto now = steady_clock::now();
    if (!acknowledged_ || now < next_acknowledged_) return false;
    next_acknowledged_ = now + kAcknowledgedEvery;
    std::set<top::AlertId> seen;
    for (const top::AlertRow& row : top::alerts(model_))
      if (acknowledged_->find(alert_id(row.key, row.alert.raised))) seen.insert({row.key, row.alert.raised});
    // What could not be kept in the file holds here.
    seen.insert(unkept_.begin(), unkept_.end());
    const bool changed = seen.size() != model_.acknowledged.size();
    model_.acknowledged = std::move(seen);
    return changed;
  }

  /// True: end.
  bool on_key(top::Key key, top::Terminal& terminal) {
    const top::Request request = top::handle(model_, key);
    if (request.redraw) terminal.redraw();
    if (request.acknowledge) acknowledge(*request.acknowledge);
    if (request.ask_signal) ask_signal(*request.ask_signal);
    if (request.drop_signal) held_.reset();
    if (request.send_signal) send_signal(*request.send_signal);
    if (request.play != top::Play::none && source_.play) {
      source_.play(request.play);
      stale_ = true;
    }
    return request.quit;
  }

  void acknowledge(const top::AlertId& id) {
    if (!model_.acknowledged.insert(id).second) {
      model_.ui.message = "it is acknowledged already";
      return;
    }
    model_.ui.message = "acknowledged";
    Status kept;
    if (source_.acknowledge)
      kept = source_.acknowledge(id);
    else if (acknowledged_)
      kept = acknowledged_->set(alert_id(id.key, id.raised), {now_of_clock(), user_name(), ""});
    else
      model_.ui.message = "acknowledged, until this program ends: nothing is recorded";
    if (!kept) unkept_.insert(id);
    if (!kept) model_.ui.message = kept.error().message + "; it holds until this program ends";
  }

  void ask_signal(const SeriesKey& key) {
    if (model_.mode == top::Mode::replay || model_.mode == top::Mode::simulation || !model_.simulated.empty()) {
      model_.ui.message = "this is no live process: there is nothing to signal";
      return;
    }
    if (model_.read_only) {
      model_.ui.message = "signals are off (--read-only)";
      return;
    }
    auto held = HeldProcess::open(config_.sources.proc_root, key.pid, key.pid_start_ticks);
    if (!held) {
      model_.ui.message = held.error().message;
      return;
    }
    held_.emplace(std::move(*held));
    const ProcessInfo& info = held_->info();
    top::SignalTarget target;
    target.pid = info.pid;
    target.user = info.user;
    target.command = info.command.empty() ? info.name : info.command;
    SeriesView series;
    series.key = key;
    if (const auto at = top::started(model_, series))
      target.started = top::clock_words(at->time, model_.view->time, false) + " UTC";
    model_.ui.target = std::move(target);
    model_.ui.signal = 0;
  }

  void send_signal(int choice) {
    constexpr std::array<int, top::kSignals.size()> kNumbers = {SIGINT, SIGTERM, SIGKILL};
    const auto index = static_cast<std::size_t>(choice);
    if (held_) {
      const Status sent = held_->send(kNumbers[index]);
      model_.ui.message = sent ? fmt::format("SIG{} sent to pid {}", top::kSignals[index].name, held_->info().pid)
                               : sent.error().message;
    }
    held_.reset();
    model_.ui.target.reset();
  }

  const Config& config_;
  Console& console_;
  TopSource source_;
  top::Model model_;
  std::optional<agent::Acknowledgements> acknowledged_;
  steady_clock::time_point next_acknowledged_{};
  std::set<top::AlertId> unkept_;
  std::optional<HeldProcess> held_;  ///< while the dialog is open
  bool stale_ = false;               ///< there is a newer View than the shown one
  std::string told_;
};

int failed(Console& console, const std::string& message) {
  console.error(message);
  return 2;
}

int run_playback(const Options& options, const Config& config, PlaybackOptions playback, Console& console) {
  const std::string store = playback.store_path;
  auto source = playback_source(config, std::move(playback));
  if (!source) return failed(console, "cannot replay: " + source.error().message);
  return Top(options, config, std::move(*source), store, console).run();
}

int replay_top(const Options& options, const Config& config, Console& console) {
  const Timestamp now = now_of_clock();
  PlaybackOptions playback;
  playback.speed = options.speed;
  for (const auto& [option, text, bound] : {std::tuple{"--from", &options.from, &playback.range.from},
                                            std::tuple{"--to", &options.to, &playback.range.to}}) {
    if (text->empty()) continue;
    const auto moment = parse_moment(option, *text, options.timezone, now);
    if (!moment) return failed(console, moment.error().message);
    *bound = *moment;
  }
  const std::vector<std::string> files = options.files;
  if (std::find(files.begin(), files.end(), "-") != files.end())
    return failed(console, "cannot replay standard input: keys come from there; write it into a file first");
  playback.name = std::filesystem::path(files.front()).filename().string();
  const auto logs = log_options(options);
  if (!logs) return failed(console, logs.error().message);
  const auto kind = recorded_kind(options);
  if (!kind) return failed(console, "cannot replay: " + kind.error().message);
  auto part = plan_one_recorded(**kind, files, {*logs, playback.range});
  if (!part) return failed(console, "cannot replay: " + part.error().message);
  playback.store_path = part->store_path;
  playback.open = std::move(part->open);
  return run_playback(options, config, std::move(playback), console);
}

int simulate_top(const Options& options, const Config& config, Console& console) {
  auto scenario = find_scenario(options.scenario);
  if (!scenario) return failed(console, "cannot simulate: " + scenario.error().message);
  PlaybackOptions playback;
  playback.mode = top::Mode::simulation;
  playback.name = scenario->name;
  playback.speed = options.speed;
  const Timestamp start = scenario->start.value_or(Timestamp{});
  playback.extent = std::pair{start, start + from_seconds(scenario->duration_s)};
  playback.open = [scenario = *scenario](Catalog& catalog) -> Result<std::unique_ptr<Source>> {
    return sim::make_simulation(scenario, catalog);
  };
  return run_playback(options, config, std::move(playback), console);
}

}  // namespace

int top(const Options& options, const LayeredConfig& layers, Console& console) {
  const Config& config = layers.config();
  if (!options.theme.empty() && top::find_theme(options.theme) < 0) {
    std::string names;
    for (const top::Theme& theme : top::themes()) names += (names.empty() ? "" : ", ") + std::string(theme.name);
    return failed(console, fmt::format("there is no theme '{}'; it is one of {}", options.theme, names));
  }
  if (!options.files.empty()) return replay_top(options, config, console);
  if (!options.scenario.empty()) return simulate_top(options, config, console);
  // Who names sources wants these, not what an agent watches.
  if (!options.no_agent && options.sources.empty())
    if (const auto socket = agent::find_agent(config.agent)) {
      auto agent = agent_source(*socket);
      if (agent) return Top(options, config, std::move(*agent), {}, console).run();
      console.warn("the agent on " + *socket + " cannot be used: " + agent.error().message + "; watching without it");
    }
  auto catalog = std::make_unique<Catalog>();
  std::string reasons;
  std::vector<LiveSource> sources = open_live_sources(config.sources, *catalog, reasons);
  if (sources.empty()) {
    if (!options.or_simulate)
      return failed(console, fmt::format("no GPU to watch: {}; 'vramtrack doctor' says what to do, 'vramtrack top "
                                         "--scenario leaking_training' needs no GPU",
                                         reasons));
    Options simulated = options;
    simulated.scenario = std::string(sim::builtin_scenarios().front().name);
    return simulate_top(simulated, config, console);
  }
  return Top(options, config, live_source(config, std::move(catalog), std::move(sources)), store_path(config.store),
             console)
      .run();
}

}  // namespace vramtrack::cli
