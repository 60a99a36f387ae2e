// actuate: receives a fleet's alerts from Alertmanager, and acts through the scheduler that owns the work
// (docs/actuate.md).
#include <fmt/format.h>

#include <filesystem>

#include "actuate/daemon.hpp"
#include "actuate/documents.hpp"
#include "actuate/rescan.hpp"
#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/fleet_options.hpp"
#include "cli/shared_arguments.hpp"
#include "core/printable.hpp"
#include "live/clock.hpp"
#include "store/store.hpp"

namespace vramtrack::cli {
namespace {

/// Do not wait for a server that stays silent, because other machines wait, too.
constexpr double kSilence_s = 10;
constexpr double kWhole_s = 60;

struct ActuateOptions {
  ConfigRequest config;
  FleetOptions server;  ///< options for --url; the others keep their defaults
  act::KubernetesAccess kubernetes;
  std::string what;  ///< "status", "reset"; empty: receive alerts
  actuate::ResetRequest reset;
  bool json = false;
};

std::string folder_of(const Config& config) {
  if (!config.actuate.state.empty()) return config.actuate.state;
  return (std::filesystem::path(store_path(config.store)).parent_path() / "actuate").string();
}

agent::AgentClient client_of(const LayeredConfig& layers) {
  return agent::AgentClient(actuate::socket_of(folder_of(layers.config())), 10, "actuate");
}

/// Empty without --url. Asks the server how to read it only when needed, because it may be down at the start.
Result<actuate::Rescan> rescan_of(const ActuateOptions& o, const Config& config) {
  if (o.server.urls.empty()) return actuate::Rescan();
  const auto servers = servers_of(o.server);
  if (!servers) return fail(servers.error());
  fleet::ServerAddress server = servers->front();
  server.silence_timeout_s = kSilence_s;
  server.timeout_s = kWhole_s;
  auto mapping = mapping_of(o.server);
  if (!mapping) return fail(mapping.error());
  actuate::RescanOptions options;
  options.mapping = std::make_shared<const fleet::Mapping>(std::move(*mapping));
  options.config = config;
  return actuate::Rescan([server, options](const actuate::Labels& labels) -> Result<actuate::Witness> {
    const auto path = fleet::Reader::ask(server);
    if (!path) return fail(fmt::format("no agent answers, and {}: {}", server.origin(), printable(path.error().why)));
    return actuate::rescan(fleet::Reader(server, *path), options, labels, time_of_day());
  });
}

int run(const ActuateOptions& o, const LayeredConfig& layers, Console& console) {
  auto rescan = rescan_of(o, layers.config());
  if (!rescan) {
    console.error(printable(rescan.error().message));
    return 2;
  }
  actuate::DaemonOptions options;
  options.rescan = std::move(*rescan);
  options.layers = layers;
  options.folder = folder_of(layers.config());
  options.kubernetes = o.kubernetes;
  return actuate::run_actuator(options);
}

int status(const ActuateOptions& options, const LayeredConfig& layers, Console& console) {
  const auto text = client_of(layers).ask("/api/v1/status");
  const auto summary = text ? actuate::parse_summary(*text) : Result<actuate::Summary>(fail(text.error()));
  if (!summary) {
    console.error(printable(summary.error().message));
    return 2;
  }
  const LocalTimes local(!options.json && console.is_terminal());
  console.write(options.json ? *text + '\n' : actuate::summary_words(*summary));
  return summary->breaker ? 1 : 0;
}

int reset(const ActuateOptions& options, const LayeredConfig& layers, Console& console) {
  if (options.reset.by.empty()) {
    console.error("--by: name the person who closes the breaker; see 'vramtrack actuate --help'");
    return 2;
  }
  const auto done = client_of(layers).ask("/api/v1/breaker/reset", actuate::reset_json(options.reset));
  if (!done) {
    console.error(printable(done.error().message));
    return 2;
  }
  console.write("the circuit breaker is closed; waiting steps continue if their evidence still holds\n");
  return 0;
}

/// Adds an option that is a setting of [actuate].
void add_setting(Arguments& arguments, ConfigRequest& into, const char* option, const char* metavar, std::string help,
                 const char* setting) {
  arguments.option(option, metavar, std::move(help), [&into, option, setting](const std::string& word) {
    into.overrides.push_back({setting, word, option});
    return Status();
  });
}

int actuate_command_of(const ActuateOptions& options, const LayeredConfig& layers, Console& console) {
  if (options.what == "status") return status(options, layers, console);
  if (options.what == "reset") return reset(options, layers, console);
  return run(options, layers, console);
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<ActuateOptions>();
  ConfigRequest& config = options->config;
  arguments
      .operand("WHAT", "status: show the current state; reset: close the circuit breaker (default: receive alerts)",
               one_of({"status", "reset"}, options->what))
      .completes({"status", "reset"});
  arguments.option("--policy", "FILE", "Read the policies and settings from this configuration file", text(config.file))
      .file();
  add_setting(arguments, config, "--listen", "ADDRESS:PORT",
              "Receive webhooks on this address (default 127.0.0.1:9836; addresses other than loopback need a token)",
              "actuate.listen");
  add_setting(arguments, config, "--agents", "URL",
              "URL of the agent that raised an alert, built from the alert's labels (default http://{instance})",
              "actuate.agents");
  add_setting(arguments, config, "--node", "NAME",
              "Name of the machine in Slurm or Kubernetes, built from the alert's labels (default {Hostname})",
              "actuate.node");
  add_setting(arguments, config, "--state", "DIR",
              "Keep the state and the record in this folder (default: 'actuate' next to the store)", "actuate.state");
  arguments
      .option("--kubernetes", "URL", "The Kubernetes API server (default: that of the pod that this runs in)",
              text(options->kubernetes.server))
      .in_manual("It must begin with https://.");
  arguments
      .option("--service-account", "DIR",
              "Read 'token' and 'ca.crt' for Kubernetes from this folder (default: the pod's)",
              text(options->kubernetes.folder))
      .in_manual("The token is read again for each request, so it may be renewed.");
  FleetOptions& server = options->server;
  arguments
      .option("--url", "URL", "If no agent answers, judge the GPU by its series on this Prometheus-compatible server",
              [&server](const std::string& url) -> Status { return server.urls = {url}, Status(); })
      .in_manual("The server has no data about processes, so only steps that concern the node are then taken.");
  arguments
      .option("--exporters", "FILE", "With --url: metrics and labels of other exporters (TOML)",
              text(server.exporters_file))
      .file();
  arguments.repeated("--header", "HEADER", "With --url: send a header, for example 'X-Scope-OrgID: team'",
                     text(server.headers));
  arguments
      .option("--bearer-token-file", "FILE", "With --url: send the token in this file", text(server.bearer_token_file))
      .file();
  arguments.option("--ca-file", "FILE", "With --url: trust the certificates in this file", text(server.ca_file)).file();
  arguments.flag("--enforce", "Carry out the steps; without this option it is a dry run, unless act.dry-run is false",
                 [&config] {
                   config.overrides.push_back({"act.dry-run", false, "--enforce"});
                 });
  arguments.option("--by", "NAME", "With reset: who closes the circuit breaker", text(options->reset.by));
  arguments.option("--reason", "TEXT", "With reset: why it may be closed", text(options->reset.reason));
  arguments.json("With status: print the JSON of /api/v1/status", options->json);
  arguments.repeated("--set", "KEY=VALUE", "Override a setting: section.key=value", text(config.assignments));
  return until_interrupted(configured<ActuateOptions>(options, actuate_command_of));
}

}  // namespace

const CommandInfo actuate_command{
    "actuate", "Receive a fleet's alerts from Alertmanager and act through Slurm or Kubernetes",
    "Examples:\n"
    "  vramtrack actuate --policy fleet.toml            a dry run: prints what would be done\n"
    "  vramtrack actuate --policy fleet.toml --enforce  acts\n"
    "  vramtrack actuate status --policy fleet.toml\n"
    "  vramtrack actuate reset --by alice --reason \"a bad rule, fixed\"\n"
    "Exit: 0 ended by SIGTERM or SIGINT, or done; 1 status: the circuit breaker is open; 2 failed.",
    declare};

}  // namespace vramtrack::cli
