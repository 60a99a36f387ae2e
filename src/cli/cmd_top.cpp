// top: the screens of src/top for a live watch, a recording or a simulation, until q is pressed.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/moment.hpp"
#include "cli/progress.hpp"
#include "cli/recorded.hpp"
#include "cli/shared_arguments.hpp"
#include "cli/terminal_size.hpp"
#include "host/process.hpp"
#include "host/user.hpp"
#include "live/clock.hpp"
#include "report/conclusion.hpp"
#include "source/sim/find_scenario.hpp"
#include "source/sim/sim.hpp"
#include "top/program.hpp"
#include "top/theme.hpp"

namespace vramtrack::cli {
using namespace vramtrack::top;

namespace {

struct TopOptions {
  ConfigRequest config;
  std::vector<std::string> files;  ///< for --replay
  PeriodArguments period;
  std::string scenario;
  bool or_simulate = false;
  double speed = 0;  ///< 0: the default
  LogArguments logs;
  std::string theme;
  bool no_agent = false;
  bool read_only = false;
  bool no_mouse = false;
  bool once = false;
  Only only;
};

// The screen of --once if the terminal's size is unknown.
constexpr std::size_t kWidth = 120;
constexpr std::size_t kHeight = 40;

constexpr int kLeak = 1;
constexpr int kFailed = 2;

int failed(Console& console, const std::string& message) {
  console.error(message);
  return kFailed;
}

/// Removes the last line of a screen, which names its keys: nobody presses keys on a page of text.
std::string without_keys(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  text.erase(text.find_last_of('\n') + 1);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

/// Shows the screens for `source`, with the acknowledgements of the store at `store` (empty: none).
int show(const TopOptions& options, const Config& config, TopSource source, const std::string& store,
         Console& console) {
  ProgramOptions program;
  program.theme = options.theme;
  program.read_only = options.read_only;
  program.mouse = !options.no_mouse;
  program.only = options.only;
  program.proc_root = config.sources.proc_root;
  program.store_path = store;
  if (options.once) {
    const LocalTimes local = console.local_times();
    const TerminalSize size = console.is_terminal() ? terminal_size() : TerminalSize{};
    console.write(
        without_keys(screen_once(program, std::move(source), static_cast<int>(size.columns > 0 ? size.columns : kWidth),
                                 static_cast<int>(size.rows > 0 ? size.rows : kHeight))));
    return 0;
  }
  const auto warnings = run_program(program, std::move(source));
  if (!warnings) return failed(console, "cannot show the screens: " + warnings.error().message);
  for (const std::string& warning : *warnings) console.warn(warning);
  return 0;
}

int run_playback(const TopOptions& options, const Config& config, PlaybackOptions playback, Console& console) {
  const std::string store = playback.store_path;
  const bool is_recording = playback.mode == top::Mode::replay;
  auto source = playback_source(config, std::move(playback));
  if (!source) return failed(console, "cannot replay: " + source.error().message);
  const auto view = source->view;
  const auto describe = source->describe;
  const int shown = show(options, config, std::move(*source), store, console);
  if (shown != 0 || !is_recording) return shown;
  // As in the other commands if all of it was seen: otherwise, the verdict on the rest is unknown.
  Model model;
  describe(model);
  return model.playback && model.playback->ended && has_leaked(*view()) ? kLeak : 0;
}

int replay_top(const TopOptions& options, const Config& config, Console& console) {
  PlaybackOptions playback;
  playback.speed = options.speed;
  const auto range = time_range(options.period, options.logs.timezone, time_of_day());
  if (!range) return failed(console, range.error().message);
  playback.range = *range;
  const std::vector<std::string> files = options.files;
  if (std::find(files.begin(), files.end(), "-") != files.end())
    return failed(console, "cannot replay standard input, because the keys are read from it; save it to a file first");
  playback.name = std::filesystem::path(files.front()).filename().string();
  LogArguments logs_options = options.logs;
  // For a recording, --interval is the time between its readings.
  for (const ConfigRequest::Override& o : options.config.overrides)
    if (o.option == "--interval") logs_options.interval_s = config.watch.interval_seconds;
  const auto logs = log_options(logs_options);
  if (!logs) return failed(console, logs.error().message);
  std::optional<Progress> progress;  // a full screen shows the progress itself
  if (options.once) progress.emplace(console, files);
  const auto kind = recorded_kind(options.files);
  if (!kind) return failed(console, "cannot replay: " + kind.error().message);
  auto part = plan_one_recorded(**kind, files, {*logs, playback.range});
  if (!part) return failed(console, "cannot replay: " + part.error().message);
  playback.is_closed = part->is_closed();
  if (playback.is_closed) playback.files = part->files;
  playback.store_path = part->store_path;
  playback.open = std::move(part->open);
  return run_playback(options, config, std::move(playback), console);
}

int simulate_top(const TopOptions& options, const Config& config, Console& console) {
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

bool names_sources(const ConfigRequest& request) {
  return std::any_of(request.overrides.begin(), request.overrides.end(),
                     [](const ConfigRequest::Override& o) { return o.setting == "sources.enabled"; });
}

int top(const TopOptions& given, const LayeredConfig& layers, Console& console) {
  TopOptions options = given;
  const Config& config = layers.config();
  if (!options.theme.empty() && top::find_theme(options.theme) < 0) {
    std::string names;
    for (const top::Theme& theme : top::themes()) names += (names.empty() ? "" : ", ") + std::string(theme.name);
    return failed(console, fmt::format("unknown theme '{}'; choose one of {}", options.theme, names));
  }
  if (options.files.empty() && options.scenario.empty())
    for (std::string& user : options.only.users) {
      auto listed = listed_user(user);
      if (!listed) return failed(console, fmt::format("--user: no user on this machine is named '{}'", user));
      user = std::move(*listed);
    }
  if (!options.files.empty()) return replay_top(options, config, console);
  if (!options.scenario.empty()) return simulate_top(options, config, console);
  // A user who names sources wants those, not the agent's.
  if (!options.no_agent && !names_sources(options.config))
    if (const auto socket = agent::find_agent(config.agent)) {
      auto agent = agent_source(*socket);
      if (agent) return show(options, config, std::move(*agent), {}, console);
      console.warn("the agent on " + *socket + " cannot be used: " + agent.error().message + "; watching without it");
    }
  LoopInput input;
  input.catalog = std::make_unique<Catalog>();
  std::string reasons;
  input.sources = open_live_sources(config.sources, *input.catalog, reasons);
  if (input.sources.empty()) {
    if (!options.or_simulate) return failed(console, no_gpu_to_watch("top", reasons));
    TopOptions simulated = options;
    simulated.scenario = std::string(sim::builtin_scenarios().front().name);
    return simulate_top(simulated, config, console);
  }
  return show(options, config, live_source(config, std::move(input), machine_clock()), store_path(config.store),
              console);
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<TopOptions>();
  arguments.flag("--once", "Print one screen as text and exit; for a recording, the last screen", options->once);
  add_interval(arguments, options->config);
  add_no_record(arguments, options->config, "Do not record into the store");
  add_sources(arguments, options->config);
  arguments
      .several("--replay", "FILE", "Show a recording instead: a store, or logs as for analyze", text(options->files))
      .file();
  add_period(arguments, options->period,
             "With --replay: start at this time, for example 2026-01-02T03:04, yesterday, or 2h (before now)",
             "With --replay: end before this time");
  add_scenario(arguments, options->scenario, "Show a simulated machine instead: a built-in scenario or a TOML file");
  add_or_simulate(arguments, options->or_simulate);
  add_speed(arguments, options->speed,
            "Playback speed: 60 plays one minute per second (default: the whole recording in about two minutes)");
  add_log_arguments_without_interval(arguments, options->logs);
  const std::vector<std::string> themes = names_of(top::themes());
  arguments.option("--theme", "NAME", "Colours: " + joined(themes), text(options->theme))
      .completes(themes)
      .in_manual("The first is the default, or monochrome if NO_COLOR is set.");
  arguments.flag("--no-agent", "Watch directly, even if an agent is running", options->no_agent)
      .in_manual("Without it, top shows what a running agent of this user or of the system watches.");
  arguments.flag("--read-only", "Never send a signal to a process", options->read_only);
  arguments.list("--user", "NAME", "Only processes of this user", text(options->only.users))
      .in_manual("GPUs and all of their memory are still shown.");
  arguments.list(
      "--pid", "N", "Only the process with this pid",
      whole_number([options](std::uint64_t pid) { options->only.pids.push_back(static_cast<std::uint32_t>(pid)); }, 1,
                   4194304));
  arguments.list("--gpu", "GPU", "Only this GPU: its number, its UUID, or the beginning of its UUID",
                 text(options->only.gpus));
  arguments.flag("--no-mouse", "Leave the mouse to the terminal", options->no_mouse)
      .in_manual("The key m does the same later. With the mouse in use, hold Shift to select text.");
  add_detector(arguments, options->config);
  add_lead_time(arguments, options->config);
  add_config(arguments, options->config);
  return until_interrupted(configured<TopOptions>(options, top));
}

}  // namespace

const CommandInfo top_command{"top",
                              "Watch in the terminal: every GPU, its processes, what leaks, and when memory runs out",
                              "Examples:\n"
                              "  vramtrack top                              watch and record; ? shows the keys\n"
                              "  vramtrack top --replay old.db --since 8h   the last eight hours of a store\n"
                              "  vramtrack top --replay gpu.csv apps.csv    logs of nvidia-smi\n"
                              "  vramtrack top --scenario leaking_training  needs no GPU\n"
                              "Exit: 0 ended, 1 with --replay: the recording was played to its end and shows a leak, 2 "
                              "nothing to show.",
                              declare};

}  // namespace vramtrack::cli
