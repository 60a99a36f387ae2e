#include "agent/daemon.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "agent/acknowledgements.hpp"
#include "agent/client.hpp"
#include "agent/input.hpp"
#include "agent/otlp.hpp"
#include "agent/own_cost.hpp"
#include "agent/server/api.hpp"
#include "agent/server/guard.hpp"
#include "agent/server/listen.hpp"
#include "agent/supervisor.hpp"
#include "core/event_words.hpp"
#include "core/format.hpp"
#include "host/host_name.hpp"
#include "host/interrupt.hpp"
#include "host/pod_folders.hpp"
#include "host/privilege.hpp"
#include "live/containment.hpp"
#include "live/loop.hpp"
#include "live/notifications.hpp"
#include "report/status.hpp"
#include "run/client/ask.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack::agent {
namespace {

using std::chrono::steady_clock;

/// A simulation runs one hour per minute.
constexpr double kDefaultSpeed = 60;
/// How often a status is sent to the supervisor.
constexpr std::chrono::seconds kSignEvery{30};

/// At shutdown, an act in progress has this long to complete.
constexpr double kLastAct_s = 3;

volatile std::sig_atomic_t g_reload = 0;
volatile std::sig_atomic_t g_acts_off = 0;

void on_hangup(int) {
  g_reload = 1;
}

void on_usr2(int) {
  g_acts_off = 1;
}

/// Queries the run (vramtrack run) that a process belongs to.
Result<std::string> ask_run_of(std::uint32_t pid, const std::string& line) {
  const auto owner = run::owner_of_process(pid);
  if (!owner) return fail(fmt::format("pid {} has ended", pid));
  for (const run::ProbedPid& one : run::probed_processes(*owner))
    if (one.pid == pid) return run::ask_control(one.folder, line, run::kControlPatience, owner);
  return fail(fmt::format("pid {} is not running under 'vramtrack run'", pid));
}

/// The node's name as the DaemonSet passes it: in a pod, the host name is that of the pod.
std::string node_name() {
  const char* node = std::getenv("NODE_NAME");
  return node != nullptr && *node != '\0' ? node : host_name();
}

/// A folder that is removed with its owner; a simulation records into it.
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

/// Addresses other than loopback require a token, so nobody exposes an agent by accident.
Result<std::string> token_for(const AgentConfig& config) {
  if (!config.token_file.empty()) return read_token(config.token_file);
  if (config.listen.empty()) return std::string();
  const auto address = parse_listen(config.listen);
  if (!address) return fail(address.error());
  if (is_loopback_host(address->first)) return std::string();
  return fail(fmt::format(
      "agent.listen {} can be reached from other machines, and there is no token; create a token: (umask 077; openssl "
      "rand -hex 32 > FILE), and set agent.token-file=FILE; or listen on 127.0.0.1 and use a proxy or 'ssh -L'",
      config.listen));
}

/// Null means plain HTTP.
Result<std::shared_ptr<const TlsCertificate>> certificate_for(const AgentConfig& config) {
  if (config.tls_certificate.empty() && config.tls_key.empty()) return std::shared_ptr<const TlsCertificate>();
  auto loaded = TlsCertificate::load({config.tls_certificate, config.tls_key});
  if (loaded && !(*loaded)->warning().empty()) log(Level::warning, printable((*loaded)->warning()));
  return loaded;
}

class Agent {
 public:
  explicit Agent(AgentOptions options) : options_(std::move(options)), started_(time_of_day()) {}

  int run() {
    struct sigaction action {};
    action.sa_handler = on_hangup;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGHUP, &action, nullptr);
    action.sa_handler = on_usr2;
    ::sigaction(SIGUSR2, &action, nullptr);
    // A hundred threads that mostly wait do not need their own arenas.
    ::mallopt(M_ARENA_MAX, 2);
    // Return the megabytes of a history to the system once it is sent. By default, malloc would keep the next one.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 20);

    const auto token = token_for(config().agent);
    if (!token) return failed(token.error().message);
    const auto tls = certificate_for(config().agent);
    if (!tls) return failed(tls.error().message);
    if (const Status opened = open_loop(); !opened) return failed(opened.error().message);
    std::string recorded = record();
    acknowledgements_.emplace(recorded.empty() ? "" : acknowledgements_path(recorded));
    silences_.emplace(recorded.empty() ? "" : silences_path(recorded));
    silences_->configure(config().notify);
    api_.emplace(published_, *acknowledgements_, *silences_, time_of_day);
    store_path_ = recorded;
    loop_->add_events_of([marks = marks_] { return marks->take(); });
    open_pod_names();
    configure(*token);

    HttpConfig http;
    http.listen = listens_on_ = config().agent.listen;
    http.socket = own_agent_socket(config().agent);
    http.socket_for_everybody =
        std::getenv("RUNTIME_DIRECTORY") != nullptr || http.socket.rfind("/run/vramtrack/", 0) == 0;
    http.tls = *tls;
    http.most_tcp_connections = 64 + static_cast<std::size_t>(config().agent.max_streams);
    if (http.listen.empty() && http.socket.empty())
      return failed("the agent would be unreachable: agent.listen and agent.socket are both empty; set one");
    auto server = HttpServer::start(http, api_->site());
    if (!server) return failed(server.error().message);
    server_ = std::move(*server);
    auto otlp = open_otlp(
        {{}, "vramtrack-agent", options_.version, node_name(), started_}, [this] { return api_->metrics_text(); },
        warn);
    if (!otlp) return failed(otlp.error().message);
    otlp_ = std::move(*otlp);
    log(Level::notice,
        fmt::format("agent {} answers on {}{}{}{}", options_.version,
                    server_->address().empty() ? "" : (*tls ? "https://" : "http://") + server_->address(),
                    !server_->address().empty() && !http.socket.empty() ? " and " : "", http.socket,
                    recorded.empty() ? "; not recording" : "; recording into " + recorded));
    if (http.socket.empty() && config().agent.socket != "none")
      log(Level::notice,
          "no Unix socket: XDG_RUNTIME_DIR is not set, so 'vramtrack top' and 'watch' will not find this agent; set "
          "agent.socket to the same file for all of them");
    // The fallback simulation sends no notifications.
    if (simulated_.empty() || !options_.scenario.empty())
      notifier_ = open_notifier(config(), simulated_.empty() ? recorded : std::string(), simulated_, time_of_day, warn);
    if (notifier_) loop_->pipeline().listen(notifying(*notifier_, *silences_, warn));
    open_runner();
    run_loop();
    notify_supervisor("STOPPING=1");
    if (runner_) {
      runner_->release(kLastAct_s);
      for (const std::string& text : runner_->take_messages()) warn(text);
    }
    if (notifier_) finish_notifications(*notifier_, simulated_.empty() && !recorded.empty(), warn);
    published_.close();
    otlp_.reset();
    server_.reset();
    runner_.reset();
    loop_->finish();
    log(Level::notice, "ended");
    return 0;
  }

 private:
  [[nodiscard]] const Config& config() const { return options_.layers.config(); }
  static void warn(const std::string& text) { log(Level::warning, printable(text)); }

  static int failed(const std::string& message) {
    log(Level::error, message);
    return 2;
  }

  /// Empty if programs are not traced.
  std::function<std::unique_ptr<Source>()> telemetry() const {
    return config().telemetry.enabled ? options_.telemetry : nullptr;
  }

  Status open_loop() {
    const double speed = options_.speed > 0 ? options_.speed : kDefaultSpeed;
    auto input = options_.scenario.empty() ? machine_input(config().sources, telemetry())
                                           : simulated_input(options_.scenario, options_.seed, speed);
    if (!input && !options_.scenario.empty()) return fail("cannot simulate: " + input.error().message);
    if (!input && !options_.or_simulate) return fail(no_gpu_to_watch("agent", input.error().message));
    if (!input) {
      log(Level::warning,
          fmt::format("no GPU to watch ({}): simulating a training job that leaks", input.error().message));
      input = simulated_input(std::string(sim::builtin_scenarios().front().name), options_.seed, speed);
      if (!input) return fail("cannot simulate: " + input.error().message);
    }
    simulated_ = input->simulated;
    speed_ = simulated_.empty() ? 1 : speed;
    loop_.emplace(config(), std::move(input->input), std::move(input->clock));
    if (input->interval_s) loop_->set_interval(*input->interval_s);
    Listener listener;
    listener.warning = warn;
    listener.event = [](const Event& event) {
      if (is_for_people(event)) log(Level::notice, printable(event.text));
    };
    listener.alert = [](const AlertNotice& notice) {
      if (!notice.incident.news) return;
      const Level level = notice.incident.news == AlertNews::cleared    ? Level::notice
                          : notice.alert.severity == Severity::critical ? Level::error
                                                                        : Level::warning;
      log(level, alert_lines(notice.view, notice.series, notice.alert, *notice.incident.news, {}));
    };
    loop_->pipeline().listen(std::move(listener));
    return {};
  }

  /// The store's path; empty if nothing is recorded. The recording of a simulation is removed with the agent, unless
  /// the user named a store.
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
    return loop_->record_into(store) ? store.path : std::string();
  }

  void configure(const std::string& token) {
    auto api = std::make_shared<ApiConfig>();
    api->layers = options_.layers;
    api->token = token;
    api->host = host_name();
    api->node = node_name();
    api->version = options_.version;
    api->own_uid = ::geteuid();
    api->pid = static_cast<std::uint32_t>(::getpid());
    api->started = started_;
    api->simulated = simulated_;
    api->store_path = store_path_;
    api->sources = loop_->source_names();
    if (simulated_.empty()) api->sites = sites_;
    if (simulated_.empty()) api->traced_categories = options_.traced_categories;
    api->marks = marks_;
    api->pods = pods_;
    if (simulated_.empty() && !launches_) launches_ = std::make_shared<Launches>(config().sources.proc_root);
    api->launches = launches_;
    api->runner = runner_.get();
    token_ = token;
    api_->configure(std::move(api));
  }

  /// The metrics contain the pods of processes, named by the kubelet's folders, else by the API server, which a pod
  /// with a service account may query.
  void open_pod_names() {
    if (!simulated_.empty()) return;
    const act::KubernetesAccess access;
    PodNames::Ask ask;
    if (const std::string logs = kubelet_logs(config().sources.proc_root); !logs.empty())
      ask = [logs]() -> Result<std::vector<act::KubernetesPod>> {
        auto pods = pods_by_folder(logs);
        if (!pods) return fail(pods.error());
        std::vector<act::KubernetesPod> out;
        for (PodFolder& pod : *pods) {
          act::KubernetesPod& one = out.emplace_back();
          one.name = std::move(pod.name);
          one.space = std::move(pod.space);
          one.uid = std::move(pod.uid);
          one.containers = std::move(pod.containers);
        }
        return out;
      };
    else if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr &&
             ::access((access.folder + "/token").c_str(), R_OK) == 0)
      ask = [access, node = node_name()] { return act::pods_of_node(access, node); };
    if (!ask) return;
    const auto notice = [](const std::string& error) {
      log(Level::warning, "the metrics identify pods by their UIDs only: " + error);
    };
    pods_ = std::make_shared<PodNames>(
        std::move(ask), [] { return steady_clock::now(); }, notice);
  }

  /// Policies are active from the first tick on.
  void open_runner() {
    act::Tools tools;
    tools.ask_run = ask_run_of;
    tools.node = node_name();
    runner_ = open_containment(config(), simulated_.empty() ? store_path_ : std::string(), !simulated_.empty(),
                               notifier_.get(), std::move(tools), time_of_day, warn);
    if (!runner_) return;
    loop_->pipeline().listen(containing(*runner_, loop_->pipeline(), warn));
    loop_->mark_held([this] { return runner_->held(); });
    configure(token_);
  }

  void run_loop() {
    const double watchdog_s = watchdog_seconds();
    auto next_sign = steady_clock::now();
    bool ready = false;
    while (wait_for_next(watchdog_s)) {
      loop_->tick();
      publish();
      if (!std::exchange(ready, true)) notify_supervisor("READY=1");
      if (const auto now = steady_clock::now(); now >= next_sign) {
        next_sign = now + kSignEvery;
        const OwnCost& cost = loop_->cost();
        notify_supervisor(
            fmt::format("STATUS={} samples, {} polls, {} late", cost.samples, cost.polls, cost.late_polls));
      }
    }
  }

  /// Called after each tick, when its cost is known.
  void publish() {
    OwnCost cost = loop_->cost();
    own_use_.add_to(cost, store_path_);
    const Store* const store = loop_->pipeline().store();
    cost.store_failing = store != nullptr && !store->failing().empty();
    cost.requests = server_->requests();
    cost.refused_connections = server_->refused_connections();
    cost.streams = api_->streams();
    if (runner_) cost.acts = runner_->outcomes();
    published_.publish(loop_->pipeline().view(), cost);
  }

  /// False if asked to stop. Meanwhile, it reloads if asked and feeds the watchdog.
  bool wait_for_next(double watchdog_s) {
    const Clock& clock = loop_->clock();
    const double step_s = watchdog_s > 0 ? std::min(1.0, watchdog_s / 2) : 1.0;
    const auto step = std::chrono::duration_cast<SteadyTime::duration>(from_seconds(step_s * speed_));
    for (;;) {
      if (g_reload != 0) reload();
      if (g_acts_off != 0) switch_off();
      if (watchdog_s > 0) notify_supervisor("WATCHDOG=1");
      const SteadyTime due = loop_->next();
      if (!clock.sleep_until(std::min(due, clock.steady() + step))) return false;
      if (clock.steady() >= due) return true;
    }
  }

  void switch_off() {
    g_acts_off = 0;
    if (!runner_) return;
    if (const Status off = runner_->switch_off(true, "by SIGUSR2"); !off) log(Level::error, off.error().message);
  }

  void reload() {
    g_reload = 0;
    notify_supervisor(reloading_state());
    const auto next = options_.reload();
    Result<std::string> token = next ? Result<std::string>() : Result<std::string>(fail(next.error()));
    if (next) {
      // The listening address does not change before a restart, so its protection must stay, too.
      AgentConfig reached = next->config().agent;
      reached.listen = listens_on_;
      token = token_for(reached);
    }
    const auto tls = token ? certificate_for(next->config().agent)
                           : Result<std::shared_ptr<const TlsCertificate>>(fail(token.error()));
    if (!tls) {
      log(Level::error, "not reloaded; the old settings stay in force: " + tls.error().message);
    } else {
      apply(*next, *token);
      server_->use(*tls);
      log(Level::notice, "reloaded");
    }
    notify_supervisor("READY=1");
  }

  /// Applies settings that can change at run time, and reports those that cannot.
  void apply(const LayeredConfig& next, const std::string& token) {
    const std::vector<std::string> later = settings_for_restart(config(), next.config());
    if (!later.empty())
      log(Level::warning, fmt::format("these take effect after a restart: {}", fmt::join(later, ", ")));
    options_.layers = next;
    if (simulated_.empty()) loop_->set_interval(config().watch.interval_seconds);
    if (runner_)
      if (const Status used = use_policies(*runner_, config()); !used) log(Level::error, used.error().message);
    configure(token);
  }

  const Interrupt interrupt_;
  AgentOptions options_;
  std::optional<TemporaryFolder> temporary_;  ///< outlives the store in it
  std::optional<Silences> silences_;          ///< before the loop, because its listeners query it
  std::unique_ptr<act::Notifier> notifier_;   ///< before the loop, which uses it until it ends
  std::unique_ptr<act::Runner> runner_;       ///< before the loop; after the notifier, which it uses
  std::optional<Loop> loop_;
  double speed_ = 1;  ///< seconds of the loop's clock per second
  OwnUse own_use_;
  std::string simulated_;
  std::string store_path_;
  std::string token_;
  std::string listens_on_;  ///< agent.listen at the start
  Published published_;
  std::optional<Acknowledgements> acknowledgements_;
  const std::shared_ptr<ProbedSites> sites_ = std::make_shared<ProbedSites>();
  const std::shared_ptr<MarkBox> marks_ = std::make_shared<MarkBox>();
  std::shared_ptr<PodNames> pods_;
  std::shared_ptr<Launches> launches_;
  std::optional<Api> api_;
  std::unique_ptr<act::OtlpPush> otlp_;  ///< its thread uses everything above, as do those of the server
  std::unique_ptr<HttpServer> server_;   ///< must be last
  Timestamp started_;
};

}  // namespace

int run_agent(AgentOptions options) {
  keep_capabilities();
  return Agent(std::move(options)).run();
}

}  // namespace vramtrack::agent
