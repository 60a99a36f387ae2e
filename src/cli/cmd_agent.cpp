// agent: samples, records and judges without a terminal, and answers on a Unix socket and HTTP (docs/agent.md).
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "agent/client.hpp"
#include "agent/sampler.hpp"
#include "agent/server/api.hpp"
#include "agent/server/guard.hpp"
#include "agent/server/listen.hpp"
#include "agent/supervisor.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "host/interrupt.hpp"
#include "live/notifications.hpp"
#include "report/status.hpp"
#include "source/sim/find_scenario.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack::cli {
using namespace vramtrack::agent;

namespace {

using std::chrono::steady_clock;

struct AgentOptions {
  ConfigRequest config;
  bool or_simulate = false;
  std::string scenario;
  double speed = 0;  ///< of a simulation; 0: the default
  std::optional<std::uint64_t> seed;
};

#ifdef VRAMTRACK_AGENT

volatile std::sig_atomic_t g_reload = 0;

void on_hangup(int) {
  g_reload = 1;
}

Timestamp wall_clock() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

/// A folder that goes with its owner: where a simulation records.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "vramtrack-simulated-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ec;
    if (!path_.empty()) std::filesystem::remove_all(path_, ec);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Beyond loopback only with a token: never as an accident.
Result<std::string> token_for(const AgentConfig& config) {
  if (!config.token_file.empty()) return agent::read_token(config.token_file);
  if (config.listen.empty()) return std::string();
  const auto address = agent::parse_listen(config.listen);
  if (!address) return fail(address.error());
  if (agent::is_loopback_host(address->first)) return std::string();
  return fail(fmt::format(
      "agent.listen {} can be reached from other machines, and there is no token: set agent.token-file ((umask 077; "
      "openssl rand -hex 32 > FILE makes one), or listen on 127.0.0.1 and let a proxy or 'ssh -L' in front",
      config.listen));
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

class Agent {
 public:
  Agent(const AgentOptions& options, const LayeredConfig& layers)
      : options_(options), layers_(layers), published_(), started_(wall_clock()) {}

  int run() {
    struct sigaction action {};
    action.sa_handler = on_hangup;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGHUP, &action, nullptr);
    // A hundred threads that mostly wait need no arenas of their own.
    ::mallopt(M_ARENA_MAX, 2);

    const auto token = token_for(config().agent);
    if (!token) return failed(token.error().message);
    if (!open_sampler()) return 2;
    std::string recorded = record();
    acknowledgements_.emplace(recorded.empty() ? "" : agent::acknowledgements_path(recorded));
    api_.emplace(published_, *acknowledgements_, wall_clock);
    store_path_ = recorded;
    configure(*token);

    agent::HttpConfig http;
    http.listen = listens_on_ = config().agent.listen;
    http.socket = agent::own_agent_socket(config().agent);
    http.socket_for_everybody =
        std::getenv("RUNTIME_DIRECTORY") != nullptr || http.socket.rfind("/run/vramtrack/", 0) == 0;
    http.most_tcp_connections = 64 + static_cast<std::size_t>(config().agent.max_streams);
    if (http.listen.empty() && http.socket.empty())
      return failed("nobody could reach the agent: agent.listen and agent.socket are both empty; set one");
    auto server = agent::HttpServer::start(http, api_->site());
    if (!server) return failed(server.error().message);
    server_ = std::move(*server);
    agent::log(Level::notice,
               fmt::format("agent {} answers on {}{}{}{}", VRAMTRACK_VERSION,
                           server_->address().empty() ? "" : "http://" + server_->address(),
                           !server_->address().empty() && !http.socket.empty() ? " and " : "", http.socket,
                           recorded.empty() ? "; not recording" : "; recording into " + recorded));
    if (http.socket.empty() && config().agent.socket != "none")
      agent::log(
          Level::notice,
          "no Unix socket: XDG_RUNTIME_DIR is not set, so 'vramtrack top' and 'watch' will not find this agent; set "
          "agent.socket to a file, for both");
    // A simulation that was not asked for wakes nobody up.
    if (simulated_.empty() || !options_.scenario.empty())
      notifier_ = open_notifier(config(), simulated_.empty() ? recorded : std::string(), simulated_, warn);
    loop();
    notify_supervisor("STOPPING=1");
    if (notifier_) finish_notifications(*notifier_, simulated_.empty() && !recorded.empty(), warn);
    published_.close();
    server_.reset();
    sampler_->finish();
    agent::log(Level::notice, "ended");
    return 0;
  }

 private:
  [[nodiscard]] const Config& config() const { return layers_.config(); }
  static void warn(const std::string& text) { agent::log(Level::warning, printable(text)); }

  static int failed(const std::string& message) {
    agent::log(Level::error, message);
    return 2;
  }

  bool open_sampler() {
    auto catalog = std::make_unique<Catalog>();
    std::vector<LiveSource> sources;
    std::string reasons;
    std::string scenario_name = options_.scenario;
    if (scenario_name.empty()) {
      sources = open_live_sources(config().sources, *catalog, reasons);
      if (sources.empty() && !options_.or_simulate) {
        failed(fmt::format("no GPU to watch: {}; 'vramtrack doctor' says what to do, --or-simulate needs no GPU",
                           reasons));
        return false;
      }
      if (sources.empty()) {
        agent::log(Level::warning, fmt::format("no GPU to watch ({}): simulating a training job that leaks", reasons));
        scenario_name = sim::builtin_scenarios().front().name;
      }
    }
    std::optional<sim::Scenario> scenario;
    if (!scenario_name.empty()) {
      auto found = find_scenario(scenario_name);
      if (!found) {
        failed("cannot simulate: " + found.error().message);
        return false;
      }
      if (options_.seed) found->seed = *options_.seed;
      simulated_ = found->name;
      source_names_ = {"simulation"};
      scenario = std::move(*found);
    }
    for (const LiveSource& live : sources) source_names_.emplace_back(live.name);
    AgentHooks hooks;
    hooks.warn = warn;
    hooks.event = [](const Event& event) {
      if (event.kind != Event::Kind::process_ended && !event.text.empty())
        agent::log(Level::notice, printable(event.text));
    };
    hooks.alert = [this](const View& view, const SeriesView& series, const Alert& alert, AlertNews news) {
      const bool bad = news != AlertNews::cleared;
      log(!bad                                   ? Level::notice
          : alert.severity == Severity::critical ? Level::error
                                                 : Level::warning,
          alert_lines(view, series, alert, news, {}));
      if (notifier_) notifier_->tell(note_of(view, series, alert, news));
    };
    sampler_.emplace(config(), std::move(catalog), std::move(sources), std::move(scenario), std::move(hooks));
    return true;
  }

  /// The store's path; empty when nothing is recorded. What a simulation records goes with the agent, unless a store
  /// was named.
  std::string record() {
    if (!config().watch.record) return {};
    StoreConfig store = config().store;
    if (!simulated_.empty() && store.path.empty()) {
      temporary_.emplace();
      if (temporary_->path().empty()) return {};
      store.path = temporary_->path() + "/simulated.db";
    } else {
      store.path = store_path(config().store);
    }
    return sampler_->record_into(store) ? store.path : std::string();
  }

  void configure(const std::string& token) {
    auto api = std::make_shared<agent::ApiConfig>();
    api->layers = layers_;
    api->token = token;
    api->host = host_name();
    api->version = VRAMTRACK_VERSION;
    api->own_uid = ::geteuid();
    api->pid = static_cast<std::uint32_t>(::getpid());
    api->started = started_;
    api->simulated = simulated_;
    api->store_path = store_path_;
    api->sources = source_names_;
    api_->configure(std::move(api));
  }

  void loop() {
    const double speed = simulated_.empty() ? 1 : options_.speed > 0 ? options_.speed : 60;
    const double watchdog_s = watchdog_seconds();
    auto deadline = steady_clock::now();
    auto next_sign = deadline;
    bool ready = false;
    while (wait_until(deadline, watchdog_s)) {
      const double period_s = simulated_.empty() ? config().watch.interval_seconds : sampler_->period_s() / speed;
      const auto interval = std::chrono::duration_cast<steady_clock::duration>(from_seconds(period_s));
      sampler_->tick(steady_clock::now() > deadline + interval / 2);
      OwnCost cost = sampler_->cost();
      cost.requests = server_->requests();
      cost.refused_connections = server_->refused_connections();
      cost.streams = api_->streams();
      published_.publish(sampler_->view(), cost);
      if (notifier_)
        for (const std::string& warning : notifier_->take_warnings()) warn(warning);
      if (!std::exchange(ready, true)) notify_supervisor("READY=1");
      if (const auto now = steady_clock::now(); now >= next_sign) {
        next_sign = now + std::chrono::seconds(30);
        notify_supervisor(
            fmt::format("STATUS={} samples, {} polls, {} late", cost.samples, cost.polls, cost.late_polls));
      }
      deadline = next_deadline(deadline, interval, steady_clock::now());
    }
  }

  /// False when asked to end. Reloads, and keeps the watchdog quiet, meanwhile.
  bool wait_until(steady_clock::time_point deadline, double watchdog_s) {
    const auto step = std::chrono::duration_cast<steady_clock::duration>(
        from_seconds(watchdog_s > 0 ? std::min(1.0, watchdog_s / 2) : 1.0));
    for (;;) {
      if (g_reload != 0) reload();
      if (watchdog_s > 0) notify_supervisor("WATCHDOG=1");
      const auto now = steady_clock::now();
      if (!Interrupt::sleep_until(std::min(deadline, now + step))) return false;
      if (steady_clock::now() >= deadline) return true;
    }
  }

  void reload() {
    g_reload = 0;
    notify_supervisor(reloading_state());
    const auto next = load_config(options_.config);
    Result<std::string> token = next ? Result<std::string>() : Result<std::string>(fail(next.error()));
    if (next) {
      // Where it is reached does not change before a restart, so what guards that must not go.
      AgentConfig reached = next->config().agent;
      reached.listen = listens_on_;
      token = token_for(reached);
    }
    if (!token) {
      agent::log(Level::error, "not reloaded, the old settings hold: " + token.error().message);
    } else {
      apply(*next, *token);
      agent::log(Level::notice, "reloaded");
    }
    notify_supervisor("READY=1");
  }

  /// What can change while running does; what cannot is told.
  void apply(const LayeredConfig& next, const std::string& token) {
    const std::vector<std::string> later = settings_for_restart(config(), next.config());
    if (!later.empty()) agent::log(Level::warning, "these take effect with a restart: " + joined(later));
    layers_ = next;
    configure(token);
  }

  const Interrupt interrupt_;
  const AgentOptions& options_;
  LayeredConfig layers_;
  std::optional<TemporaryFolder> temporary_;  ///< outlives the store in it
  std::unique_ptr<act::Notifier> notifier_;   ///< before the sampler: it is told to its end
  std::optional<AgentSampler> sampler_;
  std::string simulated_;
  std::vector<std::string> source_names_;
  std::string store_path_;
  std::string listens_on_;  ///< agent.listen of the start
  agent::Published published_;
  std::optional<agent::Acknowledgements> acknowledgements_;
  std::optional<agent::Api> api_;
  std::unique_ptr<agent::HttpServer> server_;  ///< last: its threads use all above
  Timestamp started_;
};

int agent(const AgentOptions& options, const LayeredConfig& layers, Console&) {
  return Agent(options, layers).run();
}

#else

int agent(const AgentOptions&, const LayeredConfig&, Console& console) {
  console.error(
      "this build has no agent: its libraries cannot be linked statically; install the .deb, or build with 'make'");
  return 2;
}

#endif

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<AgentOptions>();
  arguments
      .option("--listen", "ADDRESS:PORT",
              "Serve HTTP here (default 127.0.0.1:9474; an address beyond loopback needs a token)",
              [into = &options->config](const std::string& word) {
                into->overrides.push_back({"agent.listen", word, "--listen"});
                return Status();
              })
      .in_manual("The token is the one of agent.token-file.");
  add_interval(arguments, options->config);
  add_no_record(arguments, options->config, "Do not record into the store; there is no history then");
  add_sources(arguments, options->config);
  add_or_simulate(arguments, options->or_simulate);
  add_scenario(arguments, options->scenario, "Simulate this machine instead: a built-in scenario or a TOML file");
  add_speed(arguments, options->speed, "Simulation speed: 60 plays one minute per second (default 60)");
  add_seed(arguments, options->seed, "Seed of everything random in a simulation");
  add_detector(arguments, options->config);
  add_config(arguments, options->config);
  return configured<AgentOptions>(options, agent);
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
