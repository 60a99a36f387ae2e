#include "actuate/actuator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <mutex>
#include <set>

#include "act/run_program.hpp"
#include "act/slurm.hpp"
#include "actuate/template.hpp"
#include "core/order.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"
#include "host/interrupt.hpp"

namespace vramtrack::actuate {
namespace {

/// Ladders of a fleet survive a reboot of the actuator's machine, so their boot id is constant.
constexpr const char* kBoot = "fleet";
constexpr double kSlurm_s = 20;
/// How many times an agent that does not answer right before an act is queried.
constexpr int kProofs = 3;

/// The agent and the node that an alert names.
struct Place {
  AgentHosts::Address agent;
  std::string node;
};

Result<Place> place_of(const Labels& labels, const ActuatorOptions& options) {
  auto node = node_name(options.node, labels);
  if (!node) return fail(node.error());
  auto agent = options.hosts.address(options.agents, labels, *node);
  if (!agent) return fail(agent.error());
  return Place{std::move(*agent), std::move(*node)};
}

}  // namespace

struct Actuator::Core {
  ActuatorOptions options;
  std::atomic<bool> stop{false};

  mutable std::mutex mutex;  ///< guards the members below
  std::uint64_t webhooks = 0;
  std::uint64_t bad_webhooks = 0;
  std::uint64_t alerts = 0;
  std::optional<Timestamp> last_webhook;

  std::unique_ptr<act::Runner> runner;  ///< last: its thread uses the above

  explicit Core(ActuatorOptions given) : options(std::move(given)) {}
  ~Core() {
    stop = true;
    runner.reset();
  }

  /// The agent's view, if it may be queried and is current; otherwise, `refusal` is the kind of the error. Any thread.
  Result<Witness> ask_agent_at(const Place& place, Refusal& refusal) const {
    refusal = Refusal::not_listed;
    if (!place.agent.refusal.empty()) return fail(place.agent.refusal);
    refusal = Refusal::no_agent;
    auto witness = options.ask(place.agent.url);
    if (!witness) return witness;
    refusal = Refusal::mismatch;
    if (!place.agent.is_of_node && !witness->host.empty() && !is_same_host(witness->host, place.node))
      return fail(
          fmt::format("the alert is about the node {}, but the agent that was asked is on {}; if that is its "
                      "agent, list {}={} in actuate.agent-hosts",
                      place.node, printable(witness->host), place.node, place.agent.url));
    refusal = Refusal::not_current;
    if (const Status current = check_current(*witness, options.now()); !current)
      return fail(fmt::format("{}: {}", place.agent.url, current.error().message));
    return witness;
  }
  /// Metrics that a server collected from an untrusted agent are not trusted either.
  [[nodiscard]] bool may_rescan(Refusal refusal) const {
    return options.rescan && (refusal == Refusal::not_listed || refusal == Refusal::no_agent);
  }

  /// Verifies, by its agent and by its scheduler, that the subject is still the same. On the runner's thread.
  Result<ProcessInfo> prove(const act::Subject& subject) {
    const auto claim = runner->claim(subject.claim);
    if (!claim) return fail(fmt::format("no alert about {} is open any more", act::subject_words(subject)));
    const auto place = place_of(claim->labels, options);
    if (!place) return fail(place.error());
    Refusal refusal{};
    Result<Witness> witness = fail("not asked");
    for (int asked = 0; !witness && asked < kProofs && !stop; ++asked) witness = ask_agent_at(*place, refusal);
    if (!witness && may_rescan(refusal)) witness = options.rescan(claim->labels);
    if (!witness) return fail(witness.error());
    put_on_node(witness->view, subject.node);
    auto process = same_process(subject, witness->view);
    if (!process || subject.job.empty()) return process;
    const std::string number = act::job_number(subject.job);
    const auto runs = options.tools.run({"squeue", "-h", "-j", number, "-w", subject.node, "-o", "%A"}, kSlurm_s);
    if (!runs) return fail(runs.error());
    if (runs->substr(0, runs->find('\n')) != number)
      return fail(fmt::format("Slurm is not running job {} on {}", printable(number), printable(subject.node)));
    return process;
  }

  /// The claims that may still lead to an act, grouped by the agent to query.
  struct Round {
    Place place;
    std::vector<act::Climb> climbs;
    Result<Witness> witness = fail("not asked");
    Refusal refusal = Refusal::no_agent;  ///< if there is no witness
  };
  std::vector<Round> rounds(act::Observation& seen) {
    std::vector<Round> out;
    std::size_t looked_at = 0;
    const std::vector<act::Climb> climbs = runner->claims();
    // Claims with a ladder in progress come first: their steps wait for the evidence.
    for (const bool begun : {true, false})
      for (const act::Climb& one : climbs) {
        if (one.phase == act::Climb::Phase::over || one.has_subject() != begun) continue;
        if (!begun && (one.claim->is_resolved || looked_at >= kMostInRound)) continue;
        ++looked_at;
        const auto place = place_of(one.claim->labels, options);
        if (!place) {
          refuse(seen, one, Refusal::bad_label, place.error().message);
          continue;
        }
        const auto same = std::find_if(out.begin(), out.end(), [&](const Round& round) {
          return round.place.agent.url == place->agent.url && round.place.node == place->node;
        });
        Round& round =
            same == out.end() ? out.emplace_back(Round{*place, {}, fail("not asked"), Refusal::no_agent}) : *same;
        round.climbs.push_back(one);
      }
    return out;
  }

  static void refuse(act::Observation& seen, const act::Climb& one, Refusal refusal, std::string why) {
    seen.unproven.push_back({one.id, std::string(to_string(refusal)), std::move(why)});
  }

  /// The keys of the subjects that were asked for a checkpoint and have reported that it is written.
  std::set<std::string> saved() {
    std::set<std::string> out;
    for (const auto& climb : runner->state().climbs)
      if (!climb.dry_run && climb.step > 0 && !climb.next.empty() && !climb.subject.job.empty() &&
          act::slurm_has_saved(climb.subject, options.tools))
        out.insert(act::subject_key(climb.subject));
    return out;
  }

  /// The agent's view, otherwise rescans of each alert's GPU. Blocks.
  Result<Witness> witness_of(Round& round) const {
    Result<Witness> witness = ask_agent_at(round.place, round.refusal);
    if (witness || !may_rescan(round.refusal)) return witness;
    std::string why = witness.error().message;
    std::set<Labels> asked;
    for (const act::Climb& one : round.climbs) {
      const Labels& labels = one.claim->labels;
      if (stop) break;
      if (!asked.insert(labels).second) continue;
      Result<Witness> scanned = options.rescan(labels);
      if (!scanned) {
        if (why.find(scanned.error().message) == std::string::npos) why += "; " + scanned.error().message;
      } else if (!witness) {
        witness = std::move(scanned);
      } else {
        for (SeriesView& series : scanned->view.series)
          if (std::none_of(witness->view.series.begin(), witness->view.series.end(),
                           [&](const SeriesView& known) { return known.key == series.key; }))
            witness->view.series.push_back(std::move(series));
      }
    }
    if (!witness) return fail(why);
    return witness;
  }

  void ask(std::vector<Round>& rounds) {
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < rounds.size() && !stop; i = next++) rounds[i].witness = witness_of(rounds[i]);
    };
    std::vector<std::future<void>> helpers;
    for (std::size_t i = 1; i < std::min(kAtOnce, rounds.size()); ++i) {
      try {
        helpers.push_back(std::async(std::launch::async, work));
      } catch (const std::system_error&) {
        break;  // without a thread, it takes longer
      }
    }
    work();
    for (auto& helper : helpers) helper.get();
  }

  /// Adds the results of one round to `seen`.
  void look(Round& round, const std::set<std::string>& saved, act::Observation& seen) const {
    const std::string& node = round.place.node;
    if (!round.witness) {
      for (const act::Climb& one : round.climbs) {
        if (one.has_subject() || !one.with.empty())
          seen.silent_hosts.push_back(node);
        else
          refuse(seen, one, round.refusal, round.witness.error().message);
      }
      return;
    }
    const std::string host = round.witness->host;
    const act::Observation now = observation_of(std::move(*round.witness), node);
    seen.processes.insert(seen.processes.end(), now.processes.begin(), now.processes.end());
    seen.devices.insert(seen.devices.end(), now.devices.begin(), now.devices.end());
    for (const act::Climb& one : round.climbs) {
      // If an agent answers and no longer lists the process, the process has ended.
      const ProcessKey& process = one.subject.process;
      if (one.has_subject() && process.pid != 0 && now.process(process) == nullptr && seen.process(process) == nullptr)
        seen.processes.push_back({process, true, 0});
      if (one.claim->is_resolved) continue;
      Evidence evidence = evidence_of(one, node, host, now);
      if (!evidence.subject) {
        if (!one.has_subject()) refuse(seen, one, evidence.refusal, evidence.why);
        continue;
      }
      evidence.subject->has_saved = saved.contains(act::subject_key(*evidence.subject));
      seen.subjects.push_back(std::move(*evidence.subject));
    }
  }
};

std::vector<act::Limit> fleet_limits(const ActuateConfig& config) {
  using Of = act::Limit::Of;
  std::int64_t nodes = config.breaker_nodes;
  if (config.breaker_share > 0 && config.fleet_nodes > 0) {
    const double by_share = std::floor(config.breaker_share * static_cast<double>(config.fleet_nodes) + 1e-9);
    nodes = std::min(nodes, std::max<std::int64_t>(1, static_cast<std::int64_t>(by_share)));
  }
  return {
      {Of::nodes, act::Limit::Then::open_breaker, nodes, config.breaker_window_minutes * 60, "actuate.breaker-nodes"},
      {Of::acts_on_node, act::Limit::Then::wait, config.max_acts_per_node_per_hour, kSecondsPerHour,
       "actuate.max-acts-per-node-per-hour"}};
}

Actuator::Actuator(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Actuator::~Actuator() = default;

Result<std::unique_ptr<Actuator>> Actuator::open(ActuatorOptions options) {
  options.act.enabled = true;
  auto core = std::make_unique<Core>(std::move(options));
  Core& c = *core;
  if (!c.options.tools.run)
    c.options.tools.run = [&c](const std::vector<std::string>& argv, double timeout_s) {
      return act::run_for_output(argv, timeout_s, c.stop);
    };
  act::RunnerOptions runner;
  runner.policies = c.options.policies;
  runner.config = c.options.act;
  runner.audit_path = c.options.folder + "/actuate.acts.jsonl";
  runner.off_file = c.options.act.off_file.empty() ? c.options.folder + "/acts-off" : c.options.act.off_file;
  runner.boot_id = kBoot;
  runner.own_user = c.options.own_user;
  runner.tools = c.options.tools;
  runner.tools.prove = [&c](const act::Subject& subject) { return c.prove(subject); };
  runner.now = c.options.now;
  runner.limits = c.options.limits;
  runner.at_point = c.options.at_point;
  auto opened = act::Runner::open(std::move(runner));
  if (!opened) return fail(opened.error());
  c.runner = std::move(*opened);
  for (const act::Climb& one : c.runner->claims())
    c.last_webhook = std::max(c.last_webhook.value_or(one.claim->first_seen), one.claim->first_seen);
  return std::unique_ptr<Actuator>(new Actuator(std::move(core)));
}

Result<std::size_t> Actuator::take(const Webhook& webhook) {
  Core& c = *core_;
  const Timestamp now = c.options.now();
  std::vector<act::Claim> claims;
  for (const WebhookAlert& alert : webhook.alerts)
    claims.push_back({alert.fingerprint, alert.starts_at, alert.labels, now, now, !alert.is_firing});
  const auto added = c.runner->take(claims);
  if (!added) return added;
  const std::scoped_lock lock(c.mutex);
  c.last_webhook = now;
  ++c.webhooks;
  c.alerts += claims.size();
  return added;
}

void Actuator::count_bad_webhook() {
  const std::scoped_lock lock(core_->mutex);
  ++core_->bad_webhooks;
}

void Actuator::tick() {
  Core& c = *core_;
  act::Observation seen;
  std::vector<Core::Round> rounds = c.rounds(seen);
  c.ask(rounds);
  if (Interrupt::requested()) return;  // an agent whose answer was not awaited has not failed
  const std::set<std::string> saved = c.saved();
  seen.time = c.options.now();
  for (Core::Round& round : rounds) c.look(round, saved, seen);
  c.runner->see(seen);
  for (const std::string& text : c.runner->take_messages())
    if (c.options.log) c.options.log(printable(text));
}

Result<bool> Actuator::reset(const ResetRequest& request) {
  return core_->runner->close_breaker(request.by + (request.reason.empty() ? "" : ": " + request.reason));
}

Summary Actuator::summary() const {
  const Core& c = *core_;
  const act::ActsState state = c.runner->state();
  Summary out;
  out.dry_run = c.options.act.dry_run;
  out.policies = state.policies;
  out.breaker = state.breaker;
  out.nodes_acted_on = state.nodes_acted_on;
  out.nodes_allowed = state.nodes_allowed;
  out.climbing = state.climbs.size();
  out.acts = c.runner->outcomes();
  out.refused = state.refused;
  out.record_failures = state.record_failures;
  out.alerts_known = c.runner->claims();
  order(out.alerts_known,
        [](const act::Climb& a, const act::Climb& b) { return a.claim->last_seen > b.claim->last_seen; });
  const std::scoped_lock lock(c.mutex);
  out.webhooks = c.webhooks;
  out.bad_webhooks = c.bad_webhooks;
  out.alerts = c.alerts;
  out.last_webhook = c.last_webhook;
  return out;
}

act::ActsState Actuator::acts() const {
  return core_->runner->state();
}

std::uint64_t Actuator::revision() const {
  return core_->runner->revision();
}

bool Actuator::wait_for_orders(double at_most_s) {
  return core_->runner->wait_for_orders(at_most_s);
}

}  // namespace vramtrack::actuate
