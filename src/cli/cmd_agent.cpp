// agent: samples, records and judges without a terminal, and answers on a Unix socket and HTTP (docs/agent.md).
#include "agent/daemon.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"

namespace vramtrack::cli {

int agent(const Options& options, const LayeredConfig& layers, Console&) {
  agent::AgentOptions agent;
  agent.layers = layers;
  agent.reload = [&options] { return load_config(options); };
  agent.version = VRAMTRACK_VERSION;
  agent.scenario = options.scenario;
  agent.seed = options.seed;
  agent.speed = options.speed;
  agent.or_simulate = options.or_simulate;
  return agent::run_agent(std::move(agent));
}

}  // namespace vramtrack::cli
