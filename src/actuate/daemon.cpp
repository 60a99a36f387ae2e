#include "actuate/daemon.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "actuate/agent_view.hpp"
#include "actuate/site.hpp"
#include "agent/server/guard.hpp"
#include "agent/server/listen.hpp"
#include "agent/supervisor.hpp"
#include "core/file_way.hpp"
#include "core/option.hpp"
#include "core/printable.hpp"
#include "host/host_name.hpp"
#include "host/interrupt.hpp"
#include "live/clock.hpp"
#include "live/containment.hpp"
#include "live/notifications.hpp"

namespace vramtrack::actuate {
namespace {

using agent::Level;
using std::chrono::steady_clock;

/// The longest delay before a signal to end is noticed.
constexpr std::chrono::milliseconds kLook{200};

int failed(const std::string& message) {
  agent::log(Level::error, printable(message));
  return 2;
}

void warn(const std::string& text) {
  agent::log(Level::warning, printable(text));
}

/// Without a token, only loopback is served.
Result<std::string> token_for(const ActuateConfig& config) {
  if (!config.token_file.empty()) return agent::read_token(config.token_file, "actuate.token-file");
  const auto address = agent::parse_listen(config.listen);
  if (!address) return fail(address.error());
  if (agent::is_loopback_host(address->first)) return std::string();
  return fail(fmt::format(
      "actuate.listen {} can be reached from other machines, and there is no token; create one: (umask 077; openssl "
      "rand -hex 32 > FILE), set actuate.token-file=FILE and the http_config.authorization of Alertmanager's webhook",
      config.listen));
}

/// Waits until the next round is due or a webhook arrives.
class Waiting {
 public:
  void wake() {
    {
      const std::scoped_lock lock(mutex_);
      woken_ = true;
    }
    changed_.notify_all();
  }
  /// False: the process was asked to end.
  bool until(steady_clock::time_point due) {
    std::unique_lock lock(mutex_);
    while (!woken_ && steady_clock::now() < due) {
      if (Interrupt::requested()) return false;
      changed_.wait_until(lock, std::min(due, steady_clock::now() + kLook));
    }
    woken_ = false;
    return !Interrupt::requested();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

}  // namespace

std::string socket_of(const std::string& folder) {
  return folder + "/actuate.sock";
}

int run_actuator(const DaemonOptions& options) {
  const Config& config = options.layers.config();
  const Interrupt interrupt;
  const auto token = token_for(config.actuate);
  if (!token) return failed(token.error().message);
  AgentAccess access;
  access.ca_file = config.actuate.agent_ca_file;
  if (!config.actuate.agent_token_file.empty()) {
    const auto read = agent::read_token(config.actuate.agent_token_file, "actuate.agent-token-file");
    if (!read) return failed(read.error().message);
    access.token = *read;
  }
  auto hosts = AgentHosts::parse(config.actuate.agent_hosts);
  if (!hosts) return failed(hosts.error().message);
  if (hosts->is_empty() && AgentHosts::is_chosen_by_labels(config.actuate.agents) && !options.rescan)
    return failed(
        "actuate.agent-hosts lists no agent, so none would be asked, and nothing would ever be done; list the machines "
        "with agents, for example [\"gn*.example.org\"], in the configuration file");
  auto policies = act::parse_policies(config.policies.toml, config.policies.name);
  if (!policies) return failed(policies.error().message);
  if (policies->rules.empty())
    return failed("the configuration has no [[policy]], so nothing would ever be done; docs/actuate.md shows one");
  if (const Status ours = check_links(options.folder); !ours) return failed(ours.error().message);
  std::error_code ec;
  std::filesystem::create_directories(options.folder, ec);
  std::filesystem::permissions(options.folder, std::filesystem::perms::group_write | std::filesystem::perms::others_all,
                               std::filesystem::perm_options::remove, ec);
  // Destroyed after the actuator, which reports to it until its end.
  const std::unique_ptr<act::Notifier> notifier =
      open_notifier(config, options.folder + "/actuate", {}, time_of_day, warn);

  ActuatorOptions made;
  made.agents = config.actuate.agents;
  made.hosts = std::move(*hosts);
  made.node = config.actuate.node;
  made.limits = fleet_limits(config.actuate);
  made.act = config.act;
  made.policies = std::move(*policies);
  made.folder = options.folder;
  made.own_user = own_user_name();
  made.ask = [access](const std::string& url) { return ask_agent(url, access); };
  made.rescan = options.rescan;
  made.tools.kubernetes = options.kubernetes;
  if (notifier) made.tools.notify = [n = notifier.get()](act::Note note) { n->notify(std::move(note)); };
  made.now = time_of_day;
  made.log = [](const std::string& text) { agent::log(Level::notice, text); };
  auto actuator = Actuator::open(std::move(made));
  if (!actuator) return failed("cannot start: " + actuator.error().message);

  Waiting waiting;
  SiteOptions site;
  site.token = *token;
  site.host = host_name();
  site.own_uid = ::geteuid();
  site.wake = [&waiting] { waiting.wake(); };
  agent::HttpConfig http;
  http.listen = config.actuate.listen;
  http.socket = socket_of(options.folder);
  http.most_body_bytes = kMostWebhookBytes;
  const auto server = agent::HttpServer::start(http, site_of(**actuator, std::move(site)));
  if (!server) return failed("cannot answer: " + server.error().message);
  agent::log(Level::notice,
             printable(fmt::format(
                 "listening for alerts at http://{}/api/v1/alerts; {}; state is kept in {}", (*server)->address(),
                 config.act.dry_run ? fmt::format("dry run: nothing is done (pass {} to act)", name_of(Option::enforce))
                                    : "actions are enabled",
                 options.folder)));
  agent::notify_supervisor("READY=1");
  const auto period = std::chrono::duration_cast<steady_clock::duration>(from_seconds(config.actuate.poll_seconds));
  do {
    (*actuator)->tick();
  } while (waiting.until(steady_clock::now() + period));
  agent::notify_supervisor("STOPPING=1");
  agent::log(Level::notice, "ended");
  return 0;
}

}  // namespace vramtrack::actuate
