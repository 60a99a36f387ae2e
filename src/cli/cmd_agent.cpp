// agent: samples, records and judges without a terminal, and serves a Unix socket and HTTP (docs/agent.md).
#include "agent/daemon.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "cli/telemetry_source.hpp"

namespace vramtrack::cli {
namespace {

struct AgentCommandOptions {
  ConfigRequest config;
  agent::AgentOptions agent;
};

int agent(const AgentCommandOptions& options, const LayeredConfig& layers, Console&) {
  agent::AgentOptions agent = options.agent;
  agent.layers = layers;
  agent.reload = [&options] { return load_config(options.config); };
  agent.version = VRAMTRACK_VERSION;
  agent.traced_categories = std::make_shared<TracedCategories>();
  agent.telemetry = [into = agent.traced_categories] { return open_telemetry(into); };
  return agent::run_agent(std::move(agent));
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<AgentCommandOptions>();
  arguments
      .option("--listen", "ADDRESS:PORT",
              "Serve HTTP on this address (default 127.0.0.1:9474; addresses other than loopback need a token)",
              [into = &options->config](const std::string& word) {
                into->overrides.push_back({"agent.listen", word, "--listen"});
                return Status();
              })
      .in_manual("The token is read from agent.token-file.");
  arguments.option("--port", "PORT", "Serve HTTP on this port of 127.0.0.1",
                   whole_number(
                       [into = &options->config](std::uint64_t port) {
                         into->overrides.push_back({"agent.listen", "127.0.0.1:" + std::to_string(port), "--port"});
                       },
                       1, 65535));
  add_interval(arguments, options->config);
  add_no_record(arguments, options->config, "Do not record into the store; without it there is no history");
  add_no_experience(arguments, options->config);
  add_telemetry(arguments, options->config);
  add_sources(arguments, options->config);
  add_or_simulate(arguments, options->agent.or_simulate);
  add_scenario(arguments, options->agent.scenario, "Simulate a machine instead: a built-in scenario or a TOML file");
  add_speed(arguments, options->agent.speed, "Simulation speed: 60 plays one minute per second (default 60)");
  add_seed(arguments, options->agent.seed, "Random seed of a simulation");
  add_detector(arguments, options->config);
  add_lead_time(arguments, options->config);
  add_config(arguments, options->config);
  return until_interrupted(configured<AgentCommandOptions>(options, agent));
}

}  // namespace

const CommandInfo agent_command{
    "agent", "Watch in the background and serve a web page, a JSON API and /metrics for Prometheus",
    "Examples:\n"
    "  vramtrack agent                              watch, record, serve on 127.0.0.1:9474\n"
    "  vramtrack agent --scenario leaking_training  try it without a GPU\n"
    "  systemctl enable --now vramtrack-agent       start it at every boot\n"
    "Exit: 0 ended by SIGTERM or SIGINT, 2 could not start. SIGHUP reloads the configuration.",
    declare};

}  // namespace vramtrack::cli
