// top: the screens of src/top over a live watch, a recording or a simulation, until q.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/recorded.hpp"
#include "source/sim/find_scenario.hpp"
#include "source/sim/sim.hpp"
#include "top/program.hpp"
#include "top/theme.hpp"

namespace vramtrack::cli {
using namespace vramtrack::top;

namespace {

Timestamp now_of_clock() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

int failed(Console& console, const std::string& message) {
  console.error(message);
  return 2;
}

/// The screens over `source`, with the acknowledgements of the store at `store` (empty: none).
int show(const Options& options, const Config& config, TopSource source, const std::string& store, Console& console) {
  ProgramOptions program;
  program.theme = options.theme;
  program.read_only = options.read_only;
  program.proc_root = config.sources.proc_root;
  program.store_path = store;
  const auto warnings = run_program(program, std::move(source));
  if (!warnings) return failed(console, "cannot show the screens: " + warnings.error().message);
  for (const std::string& warning : *warnings) console.warn(warning);
  return 0;
}

int run_playback(const Options& options, const Config& config, PlaybackOptions playback, Console& console) {
  const std::string store = playback.store_path;
  auto source = playback_source(config, std::move(playback));
  if (!source) return failed(console, "cannot replay: " + source.error().message);
  return show(options, config, std::move(*source), store, console);
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
      if (agent) return show(options, config, std::move(*agent), {}, console);
      console.warn("the agent on " + *socket + " cannot be used: " + agent.error().message + "; watching without it");
    }
  LoopInput input;
  input.catalog = std::make_unique<Catalog>();
  std::string reasons;
  input.sources = open_live_sources(config.sources, *input.catalog, reasons);
  if (input.sources.empty()) {
    if (!options.or_simulate)
      return failed(console, fmt::format("no GPU to watch: {}; 'vramtrack doctor' says what to do, 'vramtrack top "
                                         "--scenario leaking_training' needs no GPU",
                                         reasons));
    Options simulated = options;
    simulated.scenario = std::string(sim::builtin_scenarios().front().name);
    return simulate_top(simulated, config, console);
  }
  return show(options, config, live_source(config, std::move(input), machine_clock()), store_path(config.store),
              console);
}

}  // namespace vramtrack::cli
