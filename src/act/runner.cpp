#include "act/runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "act/proof.hpp"
#include "act/run_program.hpp"
#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/file_way.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMostMessages = 256;
/// Entries of an earlier run that are newer than this are reported once more: their messages may have been lost.
constexpr double kNotifyAgain_s = 3600;

steady_clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
}

AuditEntry entry_of(const Order& order, const char* event, const RunnerOptions& options) {
  AuditEntry e;
  e.event = event;
  e.time = order.time;
  e.written = options.now();
  e.boot = options.boot_id;
  e.climb = order.climb;
  e.policy = order.policy;
  e.policy_text = order.policy_text;
  if (!order.action.empty()) e.step = order.step;
  e.action = order.action;
  e.text = order.text;
  e.dry_run = order.dry_run;
  e.is_for_people = order.is_for_people;
  e.reason = order.reason;
  e.subject = order.subject;
  return e;
}

AuditEntry entry_of(const Claim& claim, bool dry_run, const RunnerOptions& options) {
  AuditEntry e;
  e.event = "claim";
  e.time = e.written = options.now();
  e.boot = options.boot_id;
  e.climb = claim.id();
  e.dry_run = dry_run;
  const auto name = claim.labels.find("alertname");
  e.text = fmt::format("alert {} of {} {}", name == claim.labels.end() ? "?" : printable(name->second),
                       iso8601(claim.starts_at), claim.is_resolved ? "is resolved" : "fires");
  e.claim = claim;
  return e;
}

/// "policy evict (dry run): cordon: begin: ...; pid 4242 on GPU 0". An entry without a policy is about policies in
/// general, and a report is its own text.
std::string entry_words(const AuditEntry& entry) {
  std::string what = entry.action;
  const bool is_text = entry.event == "say" || entry.event.starts_with("breaker_");
  for (const std::string& part : {is_text ? std::string() : entry.event, entry.text})
    if (!part.empty()) what += (what.empty() ? "" : ": ") + part;
  std::string subject = subject_words(entry.subject);
  if (what.find(subject) != std::string::npos) subject.clear();
  if (const ActionInfo* info = find_action(entry.action);
      info != nullptr && info->by_hand != nullptr && (entry.event == "left" || entry.event == "undo_failed"))
    what += "; to undo it by hand: " + info->by_hand(entry.subject, entry.undo);
  return fmt::format("{}{}: {}{}{}", entry.policy.empty() ? "policies" : "policy " + entry.policy,
                     entry.dry_run ? " (dry run)" : "", what, subject.empty() ? "" : "; ", subject);
}

/// In the order of Climb::Phase.
constexpr std::array kPhaseWords = {"", "climbing", "standing", "returning", "ending", ""};

/// An act that was forbidden for now and will be retried.
struct Deferred {
  Order order;
  std::chrono::steady_clock::time_point first;
  std::chrono::steady_clock::time_point next;
};

/// The result of an order.
struct Carried {
  Order order;
  ActResult result;
  std::string undo_failure;
};

}  // namespace

struct Runner::Core {
  RunnerOptions options;
  std::atomic<bool> stop{false};

  std::mutex journal_mutex;  ///< taken before `mutex`
  Journal journal;

  mutable std::mutex mutex;  ///< guards the members below; never held during an act or file access
  std::condition_variable changed;
  Ladder ladder;
  std::deque<Order> orders;
  std::vector<Deferred> deferred;
  std::vector<Carried> outcomes;
  std::deque<AuditEntry> recent;
  std::vector<std::string> messages;
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts;  ///< outcomes()
  std::map<std::string, std::uint64_t> refused;                         ///< see ActsState
  std::uint64_t record_failures = 0;
  std::optional<Breaker> breaker;  ///< as recorded: a breaker shown as open stays open after a restart, too
  std::uint64_t revision = 1;
  bool busy = false;
  bool off_here = false;  ///< switched off, but the file could not be written
  std::string off_by;
  std::thread thread;

  Core(RunnerOptions given, Journal opened, Ladder made)
      : options(std::move(given)),
        journal(std::move(opened)),
        ladder(std::move(made)),
        breaker(ladder.limits().breaker()) {
    if (!options.tools.run)
      options.tools.run = [this](const std::vector<std::string>& argv, double timeout_s) {
        return run_for_output(argv, timeout_s, stop);
      };
  }

  ~Core() { end_thread(); }

  [[nodiscard]] std::string off_reason() const {
    if (off_here) return off_by;
    if (options.off_file.empty() || ::access(options.off_file.c_str(), F_OK) != 0) return {};
    return off_by.empty() ? fmt::format("the file {} exists", printable(options.off_file)) : off_by;
  }

  void message(const std::string& text) {
    if (messages.size() < kMostMessages) messages.push_back(printable(text));
  }

  /// Records the entry, publishes it, counts it, and notifies people if they must know. Nothing else does any of
  /// these.
  Status write(AuditEntry entry, bool synced) {
    entry.is_for_people = entry.is_for_people || needs_notification(entry);
    Status written = append(entry, synced);
    point("written", {});
    notify(entry);
    const std::scoped_lock lock(mutex);
    if (is_outcome(entry)) ++counts[{entry.action, entry.event}];
    if (!entry.reason.empty()) ++refused[entry.reason];
    if (!written) ++record_failures;
    if (entry.event == "breaker_opened") breaker = Breaker{entry.time, entry.text};
    if (entry.event == "breaker_closed" && written) breaker.reset();
    // Accepting a claim is not an act.
    if ((entry.claim || entry.event == "joined") && written) return written;
    message(entry_words(entry));
    if (!written) message("the audit record cannot be written, so nothing is done: " + written.error().message);
    recent.push_back(std::move(entry));
    if (recent.size() > kMostRecent) recent.pop_front();
    ++revision;
    return written;
  }

  Status append(const AuditEntry& entry, bool synced) {
    const std::scoped_lock lock(journal_mutex);
    if (journal.is_full())
      for (const AuditEntry& known : remembered())
        if (Status written = journal.append(known, false); !written) return written;
    return journal.append(entry, synced);
  }

  /// The entries that the next run needs regardless of their age, because it reads only the end of the record.
  std::vector<AuditEntry> remembered() {
    std::vector<AuditEntry> out;
    const std::scoped_lock lock(mutex);
    for (const Climb& climb : ladder.climbs()) {
      if (!climb.claim) continue;
      out.push_back(entry_of(*climb.claim, climb.dry_run, options));
      out.back().claim->is_over = climb.phase == Climb::Phase::over;
    }
    if (const auto& opened = ladder.limits().breaker()) {
      out.push_back(entry_of(breaker_order(opened->since, "breaker_opened", opened->why), "breaker_opened", options));
      out.back().dry_run = ladder.config().dry_run;
    }
    return out;
  }

  void point(std::string_view name, const Order& order) const {
    if (options.at_point) options.at_point(name, order);
  }

  void notify(const AuditEntry& entry) const {
    if (options.tools.notify && entry.is_for_people && !entry.dry_run) options.tools.notify(note_of(entry));
  }

  /// This program may have been killed between the record and its message. A receiver that gets both drops the second.
  void notify_again(const std::vector<AuditEntry>& entries) const {
    const Timestamp now = options.now();
    for (const AuditEntry& entry : entries)
      if (seconds_between(entry.written, now) < kNotifyAgain_s) notify(entry);
  }

  /// Checks, right before an act, what may have changed since the order was given. Empty: no objection.
  std::string objection(const Order& order) {
    if (stop) return "vramtrack ends";
    if (std::string off = off_reason(); !off.empty()) return off;
    const std::scoped_lock lock(mutex);
    for (const Climb& climb : ladder.climbs())
      if (climb.id == order.climb)
        return climb.phase != Climb::Phase::climbing ? "the ladder ends: " + climb.end_reason
               : climb.evidence_holds                ? std::string()
                                                     : "the evidence does not hold at this moment";
    return "the ladder has ended";
  }

  /// Verifies with the kernel that the process is the one seen, and one that the policy may act on.
  std::string ownership(const Order& order, const ActRequest& request) {
    const auto proven = prove(request);
    if (!proven) return proven.error().message;
    std::shared_ptr<const Policy> rule;
    ActConfig config;
    {
      const std::scoped_lock lock(mutex);
      config = ladder.config();
      for (const Climb& climb : ladder.climbs())
        if (climb.id == order.climb) rule = climb.rule;
    }
    if (!rule) return "the policy was changed";
    Subject now = order.subject;
    now.user = proven->user;
    now.command = proven->command.empty() ? proven->name : proven->command;
    std::string why = not_owned(*rule, now.user, options.own_user);
    if (why.empty()) why = not_named(*rule, now);
    // A process that became another program by exec() keeps its pid and its start time.
    if (why.empty() && now.command != order.subject.command) why = why_not(*rule, config, now);
    return why;
  }

  /// The result of an act that an earlier run began; nullopt: it must be done like any other.
  std::optional<ActResult> take_up(const Order& order, const ActionInfo& info, const ActRequest& request) {
    if (info.complete != nullptr && !stop && off_reason().empty()) {
      const auto completed = info.complete(request, *order.plan);
      if (completed && *completed) return ActResult{ActResult::Kind::done, **completed, {}, order.time};
      if (!completed && order.has_ended)
        return ActResult{ActResult::Kind::failed, completed.error().message, {}, order.time};
    }
    if (!order.has_ended) return std::nullopt;
    return ActResult{ActResult::Kind::done, "the process has ended: the step is assumed to be done", {}, order.time};
  }

  /// nullopt: it is forbidden for now, and was deferred. `first`: the time of the first attempt; nullopt: this is
  /// the first.
  std::optional<ActResult> do_act(const Order& order, std::optional<steady_clock::time_point> first) {
    const ActionInfo* info = find_action(order.action);
    if (info == nullptr) return ActResult{ActResult::Kind::failed, "there is no such action", {}, order.time};
    const auto recorded = [&](ActResult::Kind kind, const char* event, std::string text, std::string undo = {}) {
      AuditEntry e = entry_of(order, event, options);
      e.text = text;
      if (kind == ActResult::Kind::done) e.undo = undo;
      if (info->workload != nullptr) e.workload = info->workload(order.subject, order.arguments);
      if (!write(std::move(e), true) && kind == ActResult::Kind::done)
        text += " (the audit record could not be written)";
      return ActResult{kind, std::move(text), std::move(undo), order.time};
    };
    if (order.dry_run)
      return recorded(ActResult::Kind::done, "would", info->words(order.subject, order.arguments),
                      info->undo != nullptr ? "dry run" : "");
    ActRequest request{order.subject, order.arguments, options.tools, order.policy, order.act_id(), order.time};
    const auto now = steady_clock::now();
    if (first) request.tried_for_s = std::chrono::duration<double>(now - *first).count();
    if (order.plan && !first)
      if (auto taken_up = take_up(order, *info, request)) {
        const bool failed = taken_up->kind == ActResult::Kind::failed;
        return recorded(taken_up->kind, failed ? "failed" : "done", taken_up->text, order.plan->undo);
      }
    if (const std::string why = objection(order); !why.empty())
      return recorded(ActResult::Kind::refused, "refused", why);
    if (info->traits.needs_process)
      if (const std::string why = ownership(order, request); !why.empty())
        return recorded(ActResult::Kind::refused, "refused", why);
    // Acts on another machine's node require the same verification.
    if (!info->traits.needs_process && !info->traits.is_free && !order.subject.node.empty())
      if (const auto proven = prove(request); !proven)
        return recorded(ActResult::Kind::refused, "refused", proven.error().message);
    auto plan = order.plan ? Result<ActPlan>(*order.plan) : plan_of(*info, request);
    if (!plan) return recorded(ActResult::Kind::failed, "failed", plan.error().message);
    if (!first) {
      AuditEntry intent = entry_of(order, "intent", options);
      intent.text = plan->what;
      intent.undo = plan->undo;
      if (info->workload != nullptr) intent.workload = info->workload(order.subject, order.arguments);
      if (const Status written = write(std::move(intent), true); !written)
        return recorded(ActResult::Kind::refused, "refused",
                        "the audit record cannot be written: " + written.error().message);
      point("intent", order);
    }
    const auto done = info->perform(request, *plan);
    point("performed", order);
    if (!done && request.again_in_s) {
      if (!first) recorded(ActResult::Kind::refused, "waits", done.error().message);
      Deferred later{order, first.value_or(now), now + seconds_of(*request.again_in_s)};
      later.order.plan = *plan;
      const std::scoped_lock lock(mutex);
      deferred.push_back(std::move(later));
      return std::nullopt;
    }
    // A failed act may have been done in part, so it is undone too.
    ActResult out = done ? recorded(ActResult::Kind::done, "done", *done, plan->undo)
                         : recorded(ActResult::Kind::failed, "failed", done.error().message, plan->undo);
    point("done", order);
    return out;
  }

  /// `event`: that of the entry for the undoing. Returns why it failed; empty: it was undone.
  std::string do_undo(const Order& order, const char* event = "undone") {
    const ActionInfo* info = find_action(order.action);
    AuditEntry e = entry_of(order, order.dry_run ? "would_undo" : event, options);
    if (order.dry_run) return static_cast<void>(write(std::move(e), false)), std::string();
    if (info == nullptr || info->undo == nullptr || !order.plan) return {};
    const StepArguments none;
    const ActRequest request{order.subject, none, options.tools, order.policy, order.act_id(), order.time};
    const auto undone = info->undo(request, order.plan->undo);
    if (!undone) e.event = "undo_failed";
    e.text = fmt::format("{}; {}", undone ? *undone : undone.error().message, order.text);
    if (!undone) e.undo = order.plan->undo;
    static_cast<void>(write(std::move(e), true));
    return undone ? std::string() : undone.error().message;
  }

  void carry_out(Order order, std::optional<steady_clock::time_point> first) {
    Carried outcome;
    switch (order.kind) {
      case Order::Kind::act: {
        auto result = do_act(order, first);
        if (!result) return;
        outcome.result = std::move(*result);
        break;
      }
      case Order::Kind::undo:
        outcome.undo_failure = do_undo(order);
        break;
      default: {
        const std::string event(order.kind == Order::Kind::begin ? "begin"
                                : order.kind == Order::Kind::end ? "end"
                                : !order.event.empty()           ? order.event
                                                                 : "say");
        if (order.kind == Order::Kind::begin) point("begin", order);
        static_cast<void>(write(entry_of(order, event.c_str(), options), event != "say"));
        return;
      }
    }
    outcome.order = std::move(order);
    const std::scoped_lock lock(mutex);
    outcomes.push_back(std::move(outcome));
  }

  /// REQUIRES: `mutex` is held.
  void take_outcomes(Timestamp now) {
    for (Carried& outcome : outcomes) {
      outcome.result.time = std::max(outcome.result.time, now);
      if (outcome.order.kind == Order::Kind::undo)
        ladder.take_undo_result(outcome.order, outcome.undo_failure);
      else
        ladder.take_result(outcome.order, outcome.result);
    }
    if (!outcomes.empty()) ++revision;
    outcomes.clear();
  }

  /// Ends the thread and the act in progress.
  void end_thread() {
    {
      const std::scoped_lock lock(mutex);
      stop = true;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  void live() {
    std::unique_lock lock(mutex);
    for (;;) {
      const auto earlier = [](const Deferred& a, const Deferred& b) { return a.next < b.next; };
      auto next = std::min_element(deferred.begin(), deferred.end(), earlier);
      const auto is_due = [&] { return next != deferred.end() && next->next <= steady_clock::now(); };
      const auto is_woken = [this] { return stop || !orders.empty(); };
      if (next == deferred.end())
        changed.wait(lock, is_woken);
      else if (!is_due())
        changed.wait_until(lock, next->next, is_woken);
      if (stop) return;
      Order order;
      std::optional<steady_clock::time_point> first;
      if (is_due()) {
        order = std::move(next->order);
        first = next->first;
        deferred.erase(next);
      } else if (!orders.empty()) {
        order = std::move(orders.front());
        orders.pop_front();
      } else {
        continue;
      }
      busy = true;
      lock.unlock();
      try {
        carry_out(std::move(order), first);
      } catch (const std::bad_alloc&) {  // the order is lost and its climb waits: nothing is done
      }
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

Runner::Runner(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Runner::~Runner() = default;

Result<std::unique_ptr<Runner>> Runner::open(RunnerOptions options) {
  if (options.simulated || options.audit_path.empty()) options.config.dry_run = true;
  auto journal = Journal::open(options.audit_path);
  if (!journal) return fail(journal.error());
  auto entries = options.audit_path.empty() ? std::vector<AuditEntry>() : read_audit(options.audit_path);
  if (!entries) return fail(entries.error());
  Ladder ladder(options.policies, options.config, options.own_user);
  ladder.limit_by(options.limits);
  const auto notes = recover(*entries, options.boot_id, options.now(), ladder);
  options.tools.timeout_s = options.config.timeout_seconds;
  auto core = std::make_unique<Core>(std::move(options), std::move(*journal), std::move(ladder));
  for (auto entry = entries->rbegin(); entry != entries->rend() && core->recent.size() < kMostRecent; ++entry)
    if (!entry->claim && entry->event != "joined") core->recent.push_front(*entry);
  for (const AuditEntry& note : notes)
    if (const Status written = core->write(note, true); !written) return fail(written.error());
  core->notify_again(*entries);
  try {
    core->thread = std::thread([c = core.get()] { c->live(); });
  } catch (const std::system_error& e) {
    return fail(fmt::format("no thread can be started for policies: {}", e.what()));
  }
  return std::unique_ptr<Runner>(new Runner(std::move(core)));
}

void Runner::see(const View& view) {
  see(observe(view));
}

void Runner::see(const Observation& seen) {
  Core& c = *core_;
  const std::string off = c.off_reason();
  {
    const std::scoped_lock lock(c.mutex);
    c.take_outcomes(seen.time);
    if (c.ladder.is_off() != !off.empty()) {
      c.ladder.switch_off(!off.empty(), off);
      c.message(off.empty() ? "policies: acting is on again" : "policies: acting is off: " + off);
      ++c.revision;
    }
    for (Order& order : c.ladder.advance(seen)) {
      c.orders.push_back(std::move(order));
      ++c.revision;
    }
  }
  c.changed.notify_all();
}

Result<std::size_t> Runner::take(const std::vector<Claim>& claims) {
  Core& c = *core_;
  std::vector<AuditEntry> news;
  std::size_t added = 0;
  {
    const std::scoped_lock lock(c.mutex);
    std::map<std::string_view, bool> known;  // id, and whether it is resolved
    for (const Climb& climb : c.ladder.climbs())
      if (climb.claim) known[climb.id] = climb.claim->is_resolved;
    for (const Claim& claim : claims) {
      const auto at = known.find(claim.id());
      if (at == known.end() ? claim.is_resolved : at->second == claim.is_resolved) continue;
      if (at == known.end()) ++added;
      news.push_back(entry_of(claim, c.ladder.config().dry_run, c.options));
    }
  }
  for (std::size_t i = 0; i < news.size(); ++i)
    if (const Status written = c.write(news[i], i + 1 == news.size()); !written) return fail(written.error());
  const std::scoped_lock lock(c.mutex);
  for (const Claim& claim : claims) c.ladder.take(claim);
  ++c.revision;
  return added;
}

std::vector<Climb> Runner::claims() const {
  const std::scoped_lock lock(core_->mutex);
  std::vector<Climb> out;
  for (const Climb& climb : core_->ladder.climbs())
    if (climb.claim) out.push_back(climb);
  return out;
}

std::optional<Claim> Runner::claim(const std::string& id) const {
  const std::scoped_lock lock(core_->mutex);
  for (const Climb& climb : core_->ladder.climbs())
    if (climb.id == id && climb.phase != Climb::Phase::over) return climb.claim;
  return std::nullopt;
}

Result<bool> Runner::close_breaker(const std::string& by) {
  Core& c = *core_;
  AuditEntry closed;
  {
    const std::scoped_lock lock(c.mutex);
    const auto breaker = c.ladder.limits().breaker();
    if (!breaker) return false;
    closed = entry_of(breaker_order(c.options.now(), "breaker_closed",
                                    fmt::format("the circuit breaker that opened at {} ({}) was closed by {}",
                                                iso8601(breaker->since), breaker->why, by)),
                      "breaker_closed", c.options);
    closed.dry_run = c.ladder.config().dry_run;
  }
  closed.is_for_people = true;
  if (const Status written = c.write(std::move(closed), true); !written) return fail(written.error());
  const std::scoped_lock lock(c.mutex);
  c.ladder.close_breaker();
  ++c.revision;
  return true;
}

void Runner::use(Policies policies, ActConfig config) {
  const std::scoped_lock lock(core_->mutex);
  if (core_->options.simulated || core_->options.audit_path.empty()) config.dry_run = true;
  core_->ladder.use(std::move(policies), std::move(config));
  ++core_->revision;
}

Status Runner::switch_off(bool off, const std::string& by) {
  Core& c = *core_;
  const std::string& path = c.options.off_file;
  Status written;
  if (!path.empty()) written = check_links(path);
  if (off && !path.empty() && written) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (file.get() < 0) written = fail(fmt::format("cannot write {}: {}", path, errno_words(errno)));
  }
  if (!off && !path.empty() && written && ::unlink(path.c_str()) != 0 && errno != ENOENT)
    written = fail(fmt::format("cannot remove {}: {}", path, errno_words(errno)));
  const std::scoped_lock lock(c.mutex);
  c.off_here = off && (path.empty() || !written);
  c.off_by = off ? "switched off " + by : std::string();
  ++c.revision;
  return written;
}

std::map<std::pair<std::string, std::string>, std::uint64_t> Runner::outcomes() const {
  const std::scoped_lock lock(core_->mutex);
  return core_->counts;
}

std::uint64_t Runner::revision() const {
  const std::scoped_lock lock(core_->mutex);
  return core_->revision;
}

ActsState Runner::state() const {
  const std::scoped_lock lock(core_->mutex);
  const Ladder& ladder = core_->ladder;
  ActsState out;
  out.enabled = ladder.config().enabled;
  out.dry_run = ladder.config().dry_run;
  out.off_why = core_->off_reason();
  out.off = !out.off_why.empty();
  for (const Policy& policy : ladder.policies().rules) out.policies.push_back(policy.name);
  for (const Climb& climb : ladder.climbs()) {
    if (!climb.has_subject()) continue;
    ActsState::Standing one;
    one.id = climb.id;
    one.policy = climb.policy;
    one.subject = climb.subject;
    one.phase = kPhaseWords[static_cast<std::size_t>(climb.phase)];
    one.step = climb.step;
    one.steps = climb.rule ? climb.rule->steps.size() : 0;
    if (climb.rule && climb.step < one.steps && climb.phase == Climb::Phase::climbing)
      one.next = climb.rule->steps[climb.step].action->name;
    one.began = climb.began;
    one.dry_run = climb.dry_run;
    for (const Climb::Held& held : climb.held) one.held.push_back(held.action);
    out.climbs.push_back(std::move(one));
  }
  out.acts.assign(core_->recent.begin(), core_->recent.end());
  out.breaker = core_->breaker;
  if (const Limit* limit = ladder.limits().breaker_limit()) {
    out.nodes_allowed = limit->most;
    out.nodes_acted_on = ladder.limits().nodes_acted_on(core_->options.now());
  }
  out.refused = core_->refused;
  out.record_failures = core_->record_failures;
  out.revision = core_->revision;
  return out;
}

std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> Runner::held() const {
  const std::scoped_lock lock(core_->mutex);
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> out;
  for (const Climb& climb : core_->ladder.climbs()) {
    const ProcessKey& process = climb.subject.process;
    if (process.pid == 0 || !process.host.empty() || climb.dry_run) continue;
    for (const Climb::Held& held : climb.held)
      if (const ActionInfo* info = find_action(held.action); info != nullptr && info->traits.stops_growth)
        out[{process.pid, process.start_ticks}] =
            fmt::format("pid {} is {} by policy {}", process.pid, info->state, printable(climb.policy));
  }
  return out;
}

void Runner::release(double at_most_s) {
  wait_for_orders(at_most_s);
  Core& c = *core_;
  c.end_thread();
  const Timestamp now = c.options.now();
  std::vector<Order> left;
  {
    const std::scoped_lock lock(c.mutex);
    c.take_outcomes(now);
    left = c.ladder.held(now, "vramtrack ends");
  }
  for (const Order& order : left) {
    const ActionInfo* info = find_action(order.action);
    if (info == nullptr || order.dry_run) continue;
    if (info->traits.needs_process && c.do_undo(order, "released").empty()) continue;
    AuditEntry e = entry_of(order, "left", c.options);
    e.text = "vramtrack is ending; its next run takes this over";
    e.undo = order.plan->undo;
    static_cast<void>(c.write(std::move(e), true));
  }
}

bool Runner::wait_for_orders(double at_most_s) {
  std::unique_lock lock(core_->mutex);
  return core_->changed.wait_for(lock, from_seconds(at_most_s),
                                 [this] { return core_->orders.empty() && core_->deferred.empty() && !core_->busy; });
}

std::vector<std::string> Runner::take_messages() {
  const std::scoped_lock lock(core_->mutex);
  return std::exchange(core_->messages, {});
}

}  // namespace vramtrack::act
