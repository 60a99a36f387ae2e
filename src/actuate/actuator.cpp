#include "actuate/actuator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "act/audit.hpp"
#include "act/run_program.hpp"
#include "act/slurm.hpp"
#include "actuate/template.hpp"
#include "core/order.hpp"
#include "core/printable.hpp"
#include "core/text_hash.hpp"
#include "host/interrupt.hpp"

namespace vramtrack::actuate {
namespace {

/// Ladders of the fleet outlive a restart of the machine that the actuator runs on.
constexpr const char* kBoot = "fleet";
constexpr double kSlurm_s = 20;
/// An agent that does not answer right before an act is asked again.
constexpr int kProofs = 3;

/// The agent that an alert names, and the node.
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

std::string number_of(const std::string& job) {
  return job.substr(0, job.find('.'));
}

}  // namespace

struct Actuator::Core {
  ActuatorOptions options;
  std::atomic<bool> stop{false};

  mutable std::mutex mutex;  ///< of the state; taken before the runner's, never while an agent is asked
  State state;
  std::size_t climbing = 0;
  bool state_failed = false;

  mutable std::mutex counts_mutex;  ///< of the counters, which the runner's thread adds to
  Summary counts;
  std::set<std::string> on_record;  ///< ids of the ladders being climbed whose begin is on record

  std::unique_ptr<act::Runner> runner;  ///< last: its thread uses the above

  explicit Core(ActuatorOptions given) : options(std::move(given)) {}
  ~Core() {
    stop = true;
    runner.reset();
  }

  void log(const std::string& text) const {
    if (options.log) options.log(printable(text));
  }

  /// REQUIRES: `mutex` is held.
  Status save() {
    trim(state);
    Status saved = save_state(state, options.folder);
    if (!saved) {
      {
        const std::scoped_lock lock(counts_mutex);
        ++counts.state_failures;
      }
      if (!std::exchange(state_failed, true))
        log(fmt::format("nothing is done while the state cannot be written: {}", saved.error().message));
    } else if (std::exchange(state_failed, false)) {
      log("the state can be written again");
    }
    return saved;
  }

  /// Once for each reason of a case. REQUIRES: `mutex` is held.
  void refuse(Case& one, Refusal refusal, const std::string& why) {
    const std::string word(to_string(refusal));
    if (one.refusal == word) return;
    one.refusal = word;
    one.why = why;
    {
      const std::scoped_lock lock(counts_mutex);
      ++counts.refused[word];
    }
    act::Subject subject;
    subject.process.host = one.process.host;
    subject.labels = one.labels;
    const auto name = one.labels.find("alertname");
    runner->say(text_hash(one.key()), subject,
                fmt::format("refused ({}): alert {} of {}: {}", word, name == one.labels.end() ? "?" : name->second,
                            iso8601(one.starts_at), why));
  }

  /// The limit of the ladder. Called within runner->see(), so with `mutex` held. An act counts on the disk first.
  std::string limit(const act::Subject& subject, Timestamp now) {
    const bool was_open = state.breaker.has_value();
    State before = state;
    std::string why = take_act(state, options.limits, subject.node, now);
    const bool changes = why.empty() || was_open != state.breaker.has_value();
    if (!changes) return why;
    if (const Status saved = save(); !saved) {
      state = std::move(before);
      return "the state cannot be written: " + saved.error().message;
    }
    return why;
  }

  /// What the agent says, if it may be asked and speaks of now; else `refusal` is the kind of the error. Any thread.
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
  /// What a server has collected of an agent that is not believed is not believed either.
  [[nodiscard]] bool may_rescan(Refusal refusal) const {
    return options.rescan && (refusal == Refusal::not_listed || refusal == Refusal::no_agent);
  }

  /// That the subject is what it was, by its agent and by its scheduler. On the runner's thread.
  Result<ProcessInfo> prove(const act::Subject& subject) {
    std::optional<Labels> labels;
    {
      const std::scoped_lock lock(mutex);
      const std::string key = act::subject_key(subject);
      for (const auto& [_, one] : state.cases)
        if (!one.is_closed && one.subject == key) labels = one.labels;
    }
    if (!labels) return fail(fmt::format("no alert of {} is open any more", act::subject_words(subject)));
    const auto place = place_of(*labels, options);
    if (!place) return fail(place.error());
    Refusal refusal{};
    Result<Witness> witness = fail("not asked");
    for (int asked = 0; !witness && asked < kProofs && !stop; ++asked) witness = ask_agent_at(*place, refusal);
    if (!witness && may_rescan(refusal)) witness = options.rescan(*labels);
    if (!witness) return fail(witness.error());
    put_on_node(witness->view, subject.node);
    auto process = same_process(subject, witness->view);
    if (!process || subject.job.empty()) return process;
    const std::string number = number_of(subject.job);
    const auto runs = options.tools.run({"squeue", "-h", "-j", number, "-w", subject.node, "-o", "%A"}, kSlurm_s);
    if (!runs) return fail(runs.error());
    if (runs->substr(0, runs->find('\n')) != number)
      return fail(fmt::format("Slurm is not running job {} on {}", printable(number), printable(subject.node)));
    return process;
  }

  void note_begin(const act::AuditEntry& entry, bool is_on_record) {
    const std::scoped_lock lock(counts_mutex);
    if (entry.event == "begin" && is_on_record) on_record.insert(entry.climb);
  }

  /// Cases of which something may still become, by the agent to ask. REQUIRES: `mutex` is held.
  struct Round {
    Place place;
    std::vector<std::string> cases;
    std::vector<Labels> labels;  ///< of each
    Result<Witness> witness = fail("not asked");
    Refusal refusal = Refusal::no_agent;  ///< without a witness
  };
  std::vector<Round> rounds() {
    std::vector<Round> out;
    std::size_t looked_at = 0;
    // Those that are climbed come first: their steps wait for the evidence.
    for (const bool begun : {true, false})
      for (auto& [key, one] : state.cases) {
        if (one.is_closed || one.has_begun != begun || (one.is_resolved && !begun)) continue;
        if (!begun && looked_at >= kMostInRound) continue;
        ++looked_at;
        const auto place = place_of(one.labels, options);
        if (!place) {
          refuse(one, Refusal::bad_label, place.error().message);
          continue;
        }
        const auto same = std::find_if(out.begin(), out.end(), [&](const Round& round) {
          return round.place.agent.url == place->agent.url && round.place.node == place->node;
        });
        Round& round =
            same == out.end() ? out.emplace_back(Round{*place, {}, {}, fail("not asked"), Refusal::no_agent}) : *same;
        round.cases.push_back(key);
        round.labels.push_back(one.labels);
      }
    return out;
  }

  /// The keys of those that were asked for a checkpoint and have told that it is written.
  std::set<std::string> saved() {
    std::set<std::string> out;
    for (const auto& climb : runner->state().climbs)
      if (!climb.dry_run && climb.step > 0 && !climb.next.empty() && !climb.subject.job.empty() &&
          act::slurm_has_saved(climb.subject, options.tools))
        out.insert(act::subject_key(climb.subject));
    return out;
  }

  /// The agent's, else what rescans say of each alert's GPU. Blocks.
  Result<Witness> witness_of(Round& round) const {
    Result<Witness> witness = ask_agent_at(round.place, round.refusal);
    if (witness || !may_rescan(round.refusal)) return witness;
    std::string why = witness.error().message;
    std::set<Labels> asked;
    for (const Labels& labels : round.labels) {
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
        break;  // without a thread it takes longer
      }
    }
    work();
    for (auto& helper : helpers) helper.get();
  }

  /// What one round adds to what is seen. REQUIRES: `mutex` is held.
  void look(Round& round, const std::set<std::string>& saved, act::Observation& seen, bool& changed) {
    const std::string& node = round.place.node;
    if (!round.witness) {
      for (const std::string& key : round.cases) {
        Case& one = state.cases.at(key);
        if (one.has_begun)
          seen.silent_hosts.push_back(node);
        else
          refuse(one, round.refusal, round.witness.error().message);
      }
      return;
    }
    const std::string host = round.witness->host;
    const act::Observation now = observation_of(std::move(*round.witness), node);
    seen.processes.insert(seen.processes.end(), now.processes.begin(), now.processes.end());
    seen.devices.insert(seen.devices.end(), now.devices.begin(), now.devices.end());
    for (const std::string& key : round.cases) {
      Case& one = state.cases.at(key);
      // An agent that answers and does not know the process any more says that it has ended.
      if (one.is_bound() && one.process.pid != 0 && now.process(one.process) == nullptr &&
          seen.process(one.process) == nullptr)
        seen.processes.push_back({one.process, true, 0});
      if (one.is_resolved) continue;
      Evidence evidence = evidence_of(one, node, host, now);
      if (!evidence.subject) {
        if (one.has_begun) continue;
        refuse(one, evidence.refusal, evidence.why);
        changed = changed || one.is_bound();
        one.subject.clear();
        one.process = {};
        continue;
      }
      if (!one.is_bound() && !bind(one, *evidence.subject, changed)) continue;
      if (!one.refusal.empty()) {
        one.refusal.clear();
        one.why.clear();
        changed = true;
      }
      const std::string subject = act::subject_key(*evidence.subject);
      evidence.subject->has_saved = saved.contains(subject);
      if (std::none_of(seen.subjects.begin(), seen.subjects.end(),
                       [&subject](const act::Subject& s) { return act::subject_key(s) == subject; }))
        seen.subjects.push_back(std::move(*evidence.subject));
    }
  }

  bool bind(Case& one, const act::Subject& subject, bool& changed) {
    if (act::first_match(options.policies, options.act, subject) == nullptr) {
      std::string why = "no policy applies to it";
      if (options.policies.rules.size() == 1)
        why += fmt::format(": {}", act::why_not(options.policies.rules.front(), options.act, subject));
      refuse(one, Refusal::no_policy, fmt::format("{} ({})", why, act::subject_words(subject)));
      return false;
    }
    one.subject = act::subject_key(subject);
    one.process = subject.process;
    changed = true;
    return true;
  }

  /// Which ladders have begun, and which have ended. One has begun once its record says so: a ladder that nobody climbs
  /// and that the state knows is over, but one that was not recorded before a crash has never done anything.
  /// REQUIRES: `mutex` is held.
  void follow() {
    std::map<std::string, bool> climbed;  // by subject: whether it is on record
    const act::ActsState acts = runner->state();
    {
      const std::scoped_lock lock(counts_mutex);
      std::set<std::string> known;
      for (const auto& climb : acts.climbs) {
        climbed[act::subject_key(climb.subject)] = on_record.contains(climb.id);
        if (on_record.contains(climb.id)) known.insert(climb.id);
      }
      on_record = std::move(known);
    }
    climbing = climbed.size();
    bool changed = false;
    for (auto& [key, one] : state.cases) {
      if (!one.is_bound() || one.is_closed) continue;
      const auto climb = climbed.find(one.subject);
      if (climb != climbed.end() && climb->second && !one.has_begun) changed = one.has_begun = true;
      if (climb == climbed.end() && one.has_begun) changed = one.is_closed = true;
    }
    if (changed) static_cast<void>(save());  // it is seen again in the next round
  }

  /// A ladder that began before the state said so: the record knows. REQUIRES: no other thread yet.
  void learn_from(const std::vector<act::AuditEntry>& entries) {
    std::set<std::string> begun;
    for (const act::AuditEntry& entry : entries)
      if (entry.event == "begin" && entry.dry_run == options.act.dry_run) begun.insert(act::subject_key(entry.subject));
    for (auto& [key, one] : state.cases)
      if (one.is_bound() && begun.contains(one.subject)) one.has_begun = true;
    for (const auto& climb : runner->state().climbs) on_record.insert(climb.id);
  }
};

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
  const std::string audit = c.options.folder + "/actuate.acts.jsonl";
  act::RunnerOptions runner;
  runner.policies = c.options.policies;
  runner.config = c.options.act;
  runner.audit_path = audit;
  runner.off_file = c.options.act.off_file.empty() ? c.options.folder + "/acts-off" : c.options.act.off_file;
  runner.boot_id = kBoot;
  runner.own_user = c.options.own_user;
  runner.tools = c.options.tools;
  runner.tools.prove = [&c](const act::Subject& subject) { return c.prove(subject); };
  runner.now = c.options.now;
  runner.limit = [&c](const act::Subject& subject, const act::Step&, Timestamp now) { return c.limit(subject, now); };
  runner.written = [&c](const act::AuditEntry& entry, bool is_on_record) { c.note_begin(entry, is_on_record); };
  runner.at_point = c.options.at_point;
  // The record is locked first: another actuator must not lose its state to this one.
  auto opened = act::Runner::open(std::move(runner));
  if (!opened) return fail(opened.error());
  c.runner = std::move(*opened);
  auto state = load_state(c.options.folder);
  if (!state) return fail(state.error());
  c.state = std::move(*state);
  if (!c.options.act.dry_run) forget_dry_run(c.state);
  c.state.dry_run = c.options.act.dry_run;
  const auto entries = act::read_audit(audit);
  if (!entries) return fail(entries.error());
  c.learn_from(*entries);
  c.follow();  // ladders that ended and were not noted
  if (const Status saved = c.save(); !saved) return fail(saved.error());
  return std::unique_ptr<Actuator>(new Actuator(std::move(core)));
}

Result<std::size_t> Actuator::take(const Webhook& webhook) {
  Core& c = *core_;
  const Timestamp now = c.options.now();
  const std::scoped_lock lock(c.mutex);
  State before = c.state;
  std::size_t added = 0;
  for (const WebhookAlert& alert : webhook.alerts) {
    Case one;
    one.fingerprint = alert.fingerprint;
    one.starts_at = alert.starts_at;
    const auto known = c.state.cases.find(one.key());
    if (known != c.state.cases.end()) {
      known->second.last_seen = now;
      known->second.is_resolved = !alert.is_firing;
      continue;
    }
    if (!alert.is_firing) continue;
    one.labels = alert.labels;
    one.first_seen = one.last_seen = now;
    c.state.cases[one.key()] = std::move(one);
    ++added;
  }
  c.state.last_webhook = now;
  if (const Status saved = c.save(); !saved) {
    c.state = std::move(before);
    return fail(saved.error());
  }
  const std::scoped_lock counting(c.counts_mutex);
  ++c.counts.webhooks;
  c.counts.alerts += webhook.alerts.size();
  return added;
}

void Actuator::count_bad_webhook() {
  const std::scoped_lock lock(core_->counts_mutex);
  ++core_->counts.bad_webhooks;
}

void Actuator::tick() {
  Core& c = *core_;
  std::vector<Core::Round> rounds;
  {
    const std::scoped_lock lock(c.mutex);
    c.follow();  // what the last tick began is on record by now
    rounds = c.rounds();
  }
  c.ask(rounds);
  if (Interrupt::requested()) return;  // an agent that was not waited for has not failed to answer
  const std::set<std::string> saved = c.saved();
  {
    const std::scoped_lock lock(c.mutex);
    act::Observation seen;
    seen.time = c.options.now();
    bool changed = false;
    for (Core::Round& round : rounds) {
      // A webhook that came meanwhile may have pushed some out.
      std::erase_if(round.cases, [&c](const std::string& key) { return !c.state.cases.contains(key); });
      c.look(round, saved, seen, changed);
    }
    if (changed && !c.save()) return;  // what it is bound to must be known before anything is done
    c.runner->see(seen);
    c.follow();
  }
  for (const std::string& text : c.runner->take_messages()) c.log(text);
}

Result<bool> Actuator::reset(const ResetRequest& request) {
  Core& c = *core_;
  const std::scoped_lock lock(c.mutex);
  if (!c.state.breaker) return false;
  State before = c.state;
  const OpenBreaker was = *c.state.breaker;
  c.state.breaker.reset();
  c.state.acts.clear();  // or it would open again at once
  if (const Status saved = c.save(); !saved) {
    c.state = std::move(before);
    return fail(saved.error());
  }
  c.runner->say("breaker", {},
                fmt::format("the circuit breaker that opened at {} ({}) was closed by {}{}", iso8601(was.since),
                            was.why, request.by, request.reason.empty() ? "" : ": " + request.reason),
                true);
  return true;
}

Summary Actuator::summary() const {
  const Core& c = *core_;
  auto acts = c.runner->outcomes();  // not with the counters' mutex: the runner's is taken before that
  Summary out;
  {
    const std::scoped_lock lock(c.counts_mutex);
    out = c.counts;
  }
  out.acts = std::move(acts);
  const std::scoped_lock lock(c.mutex);
  out.dry_run = c.options.act.dry_run;
  for (const act::Policy& policy : c.options.policies.rules) out.policies.push_back(policy.name);
  out.breaker = c.state.breaker;
  out.nodes_acted_on = nodes_acted_on(c.state, c.options.limits, c.options.now());
  out.nodes_allowed = nodes_allowed(c.options.limits);
  out.climbing = c.climbing;
  out.last_webhook = c.state.last_webhook;
  for (const auto& [key, one] : c.state.cases) out.cases.push_back(one);
  order(out.cases, [](const Case& a, const Case& b) { return a.last_seen > b.last_seen; });
  return out;
}

act::ActsState Actuator::acts() const {
  return core_->runner->state();
}

std::uint64_t Actuator::revision() const {
  return core_->runner->revision();
}

bool Actuator::settle(double at_most_s) {
  return core_->runner->settle(at_most_s);
}

}  // namespace vramtrack::actuate
