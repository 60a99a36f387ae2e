#include "act/ladder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"

namespace vramtrack::act {
namespace {

/// A process that still holds this share of its memory at the time its growth was stopped has not released anything.
constexpr double kStillHeld = 0.9;
/// How much of a process's memory may remain before it counts as not returned: the larger of the two.
constexpr double kReturnSlack = 0.1;
constexpr double kReturnSlack_bytes = 64 * kMiB;
constexpr int kMostUndoFailures = 3;

bool stops_growth(const Climb& climb) {
  return std::any_of(climb.held.begin(), climb.held.end(), [](const Climb::Held& held) {
    const ActionInfo* info = find_action(held.action);
    return info != nullptr && info->traits.stops_growth;
  });
}

}  // namespace

std::string Claim::id() const {
  return text_hash(fingerprint + '/' + std::to_string(starts_at.time_since_epoch().count()));
}

std::string Order::act_id() const {
  return fmt::format("{}-{}", climb, step + 1);
}

const Observation::Process* Observation::process(const ProcessKey& key) const {
  for (const Process& process : processes)
    if (process.key == key) return &process;
  return nullptr;
}

bool Observation::is_silent(const std::string& host) const {
  return std::find(silent_hosts.begin(), silent_hosts.end(), host) != silent_hosts.end();
}

const Observation::Device* Observation::device(const DeviceKey& key) const {
  for (const Device& device : devices)
    if (device.key == key) return &device;
  return nullptr;
}

Observation observe(const View& view) {
  Observation seen;
  seen.time = view.time;
  seen.subjects = subjects_of(view);
  for (const SeriesView& series : view.series) {
    const DeviceKey device = device_key(series.key);
    if (series.key.metric == Metric::device_used && !series.paused)
      seen.devices.push_back({device, static_cast<double>(series.used_bytes), 0});
    if (is_of_device(series.key.metric) || series.key.pid == 0) continue;
    const ProcessKey key = process_key(series.key);
    auto known = std::find_if(seen.processes.begin(), seen.processes.end(),
                              [&key](const Observation::Process& p) { return p.key == key; });
    if (known == seen.processes.end()) known = seen.processes.insert(known, {key, true, 0});
    known->ended = known->ended && series.ended;
    if (series.key.metric == Metric::process_used && !series.ended) known->used_bytes += series.used_bytes;
  }
  for (const SeriesView& series : view.series)
    if (series.key.metric == Metric::process_used && !series.ended)
      for (Observation::Device& device : seen.devices)
        if (device.key == device_key(series.key)) device.by_processes_bytes += static_cast<double>(series.used_bytes);
  return seen;
}

Ladder::Ladder(Policies policies, ActConfig config, std::string own_user) : own_user_(std::move(own_user)) {
  use(std::move(policies), std::move(config));
}

std::shared_ptr<const Policy> Ladder::rule(const std::string& name, const std::string& hash) const {
  const auto at = rules_.find(name);
  return at != rules_.end() && text_hash(at->second->text) == hash ? at->second : nullptr;
}

void Ladder::use(Policies policies, ActConfig config) {
  // In a dry run, the first steps were not really carried out.
  const bool other_mode = config.dry_run != config_.dry_run;
  policies_ = std::move(policies);
  config_ = std::move(config);
  limits_.use({
      {Limit::Of::restarts, Limit::Then::refuse, config_.max_retries, kRetryWindow_s, "act.max-retries"},
      {Limit::Of::acts, Limit::Then::wait, config_.max_acts_per_hour, kSecondsPerHour, "act.max-acts-per-hour"},
  });
  rules_.clear();
  for (const Policy& policy : policies_.rules) rules_[policy.name] = std::make_shared<const Policy>(policy);
  for (Climb& climb : climbs_) {
    const auto at = rules_.find(climb.policy);
    const bool same = at != rules_.end() && climb.rule && at->second->text == climb.rule->text;
    if (!same)
      wind_down(climb, "the policy was changed");
    else if (other_mode)
      wind_down(climb, "act.dry-run was changed");
  }
}

void Ladder::switch_off(bool off, std::string why) {
  off_ = off;
  off_why_ = std::move(why);
}

void Ladder::restore(Climb climb) {
  climb.resumed = true;
  climb.waiting = false;
  if (!climb.rule) wind_down(climb, "the policy was changed");
  climbs_.push_back(std::move(climb));
}

/// The breaker belongs to no climb.
Order breaker_order(Timestamp now, std::string_view event, std::string text) {
  Order order;
  order.climb = "breaker";
  order.event = event;
  order.text = std::move(text);
  order.time = now;
  return order;
}

Climb* Ladder::find(const std::string& id) {
  for (Climb& climb : climbs_)
    if (climb.id == id) return &climb;
  return nullptr;
}

Order Ladder::order(Order::Kind kind, const Climb& climb, Timestamp now, std::string text) {
  Order order;
  order.kind = kind;
  order.climb = climb.id;
  order.policy = climb.policy;
  order.subject = climb.subject;
  order.step = climb.step;
  order.text = std::move(text);
  order.time = now;
  order.dry_run = climb.dry_run;
  return order;
}

void Ladder::report(const Climb& climb, Timestamp now, Orders& orders, std::string text, bool is_for_people) const {
  orders.push_back(order(Order::Kind::report, climb, now, std::move(text)));
  orders.back().is_for_people = is_for_people;
}

/// A step that is due but not done is always reported.
void Ladder::leave(const Climb& climb, const Step& step, Timestamp now, Orders& orders, std::string_view event,
                   std::string text) const {
  orders.push_back(order(Order::Kind::not_done, climb, now, std::move(text)));
  orders.back().action = step.action->name;
  orders.back().event = event;
}

void Ladder::wind_down(Climb& climb, std::string why) {
  if (climb.phase == Climb::Phase::ending || !climb.has_subject()) return;
  climb.phase = Climb::Phase::ending;
  climb.unwind = true;
  climb.end_reason = std::move(why);
}

void Ladder::take(const Claim& claim) {
  if (Climb* known = find(claim.id())) {
    if (!known->claim) return;
    known->claim->last_seen = claim.last_seen;
    known->claim->is_resolved = claim.is_resolved;
    return;
  }
  if (claim.is_resolved) return;
  Climb climb;
  climb.id = claim.id();
  climb.phase = Climb::Phase::claimed;
  climb.claim = claim;
  climb.subject.labels = claim.labels;
  climbs_.push_back(std::move(climb));
  const auto is_claim = [](const Climb& c) { return !c.has_subject(); };
  if (std::count_if(climbs_.begin(), climbs_.end(), is_claim) <= static_cast<std::ptrdiff_t>(kMostClaims)) return;
  climbs_.erase(std::min_element(climbs_.begin(), climbs_.end(), [&](const Climb& a, const Climb& b) {
    if (is_claim(a) != is_claim(b)) return is_claim(a);
    if (a.phase != b.phase) return a.phase == Climb::Phase::over;
    return is_claim(a) && a.claim->last_seen < b.claim->last_seen;
  }));
}

/// Reports each reason once per claim.
void Ladder::refuse(Climb& climb, Timestamp now, Orders& orders, const std::string& reason, std::string why) const {
  if (climb.phase != Climb::Phase::claimed || !climb.with.empty() || climb.refusal == reason) return;
  climb.refusal = reason;
  climb.why = why;
  const auto name = climb.claim->labels.find("alertname");
  report(climb, now, orders,
         fmt::format("refused ({}): alert {} of {}: {}", reason,
                     name == climb.claim->labels.end() ? "?" : printable(name->second), iso8601(climb.claim->starts_at),
                     why));
  orders.back().reason = reason;
  orders.back().dry_run = config_.dry_run;
}

std::vector<Order> Ladder::advance(const Observation& seen) {
  Orders orders;
  limits_.forget_old(seen.time);
  const bool acts = config_.enabled && !off_;
  if (!acts)
    for (Climb& climb : climbs_) wind_down(climb, off_ ? off_why_ : "act.enabled was set to false");
  for (const Observation::Unproven& unproven : seen.unproven)
    if (Climb* climb = find(unproven.claim)) refuse(*climb, seen.time, orders, unproven.reason, unproven.why);
  for (Climb& climb : climbs_) {
    if (!climb.has_subject()) continue;
    if (climb.phase != Climb::Phase::ending && seen.is_silent(climb.subject.process.host)) {
      climb.evidence_holds = false;
      continue;
    }
    const bool climbs = climb.phase == Climb::Phase::climbing && climb.rule;
    climb.evidence_holds = climbs && judge(climb, seen) == Evidence::holds;
    if (climbs) climb.end_reason.clear();
    if (!climb.waiting) step_forward(climb, seen, orders);
  }
  drop_ended();
  if (!acts) return orders;
  for (const Subject& subject : seen.subjects) see(subject, seen, orders);
  drop_ended();
  return orders;
}

/// Removes climbs that have ended, but remembers those of claims; claims about the same subject have had theirs, too.
void Ladder::drop_ended() {
  for (std::size_t i = 0; i < climbs_.size(); ++i) {
    Climb& climb = climbs_[i];
    if (climb.phase != Climb::Phase::ending || climb.waiting || !climb.held.empty()) continue;
    for (Climb& other : climbs_)
      if (other.phase == Climb::Phase::claimed && other.with == climb.id) other.phase = Climb::Phase::over;
    if (!climb.claim) continue;
    climb.phase = Climb::Phase::over;
    climb.rule.reset();
  }
  std::erase_if(climbs_,
                [](const Climb& c) { return c.phase == Climb::Phase::ending && !c.waiting && c.held.empty(); });
}

void Ladder::see(const Subject& subject, const Observation& seen, Orders& orders) {
  Climb* claimed = subject.claim.empty() ? nullptr : find(subject.claim);
  if (!subject.claim.empty() && (claimed == nullptr || claimed->phase == Climb::Phase::over)) return;
  const bool may_begin = claimed == nullptr || claimed->phase == Climb::Phase::claimed;
  const std::string key = subject_key(subject);
  const auto at = std::find_if(climbs_.begin(), climbs_.end(),
                               [&key](const Climb& c) { return c.has_subject() && subject_key(c.subject) == key; });
  if (claimed != nullptr && may_begin && at != climbs_.end() && claimed->with.empty()) {
    claimed->with = at->id;
    claimed->refusal = claimed->why = {};
    report(*claimed, seen.time, orders, at->id);
    orders.back().event = "joined";
    orders.back().dry_run = at->dry_run;
  }
  if (at != climbs_.end() || !may_begin) return;
  const Policy* policy = first_match(policies_, config_, subject);
  if (policy == nullptr && claimed != nullptr) {
    std::string why = "no policy applies to it";
    if (policies_.rules.size() == 1) why += ": " + why_not(policies_.rules.front(), config_, subject);
    refuse(*claimed, seen.time, orders, "no_policy", fmt::format("{} ({})", why, subject_words(subject)));
  }
  if (policy != nullptr) step_forward(begin(claimed, subject, *policy, seen.time, orders), seen, orders);
}

Climb& Ladder::begin(Climb* claimed, const Subject& subject, const Policy& policy, Timestamp now, Orders& orders) {
  Climb climb;
  climb.id = text_hash(subject_key(subject) + '/' + std::to_string(now.time_since_epoch().count()));
  if (claimed != nullptr) {
    climb.id = claimed->id;
    climb.claim = claimed->claim;
  }
  climb.policy = policy.name;
  climb.rule = rules_.at(policy.name);
  climb.subject = subject;
  climb.began = climb.step_since = now;
  climb.dry_run = config_.dry_run;
  orders.push_back(order(Order::Kind::begin, climb, now, subject.because));
  orders.back().policy_text = text_hash(policy.text);
  if (claimed == nullptr) return climbs_.emplace_back(std::move(climb));
  *claimed = std::move(climb);
  return *claimed;
}

Order Ladder::undo_of(const Climb& climb, const Climb::Held& held, Timestamp now, std::string why) {
  Order undo = order(Order::Kind::undo, climb, now, std::move(why));
  undo.step = held.step;
  undo.action = held.action;
  undo.plan = ActPlan{{}, held.undo};
  return undo;
}

std::vector<Order> Ladder::held(Timestamp now, const std::string& why) const {
  std::vector<Order> out;
  for (const Climb& climb : climbs_)
    for (auto held = climb.held.rbegin(); held != climb.held.rend(); ++held)
      out.push_back(undo_of(climb, *held, now, why));
  return out;
}

/// Acts in force are undone in reverse order.
bool Ladder::order_undo(Climb& climb, Timestamp now, Orders& orders) {
  if (!climb.unwind) return false;
  // An act that needs no process concerns the node (drain, cordon): it stays until the climb ends, not only until the
  // next step needs the process to run.
  const bool is_end = climb.phase == Climb::Phase::ending;
  const auto last = std::find_if(climb.held.rbegin(), climb.held.rend(), [is_end](const Climb::Held& held) {
    const ActionInfo* info = find_action(held.action);
    return is_end || info == nullptr || info->traits.needs_process;
  });
  if (last == climb.held.rend()) {
    climb.unwind = false;
    return false;
  }
  orders.push_back(undo_of(climb, *last, now,
                           climb.end_reason.empty() ? "the next step needs the process to run" : climb.end_reason));
  climb.waiting = true;
  return true;
}

void Ladder::step_forward(Climb& climb, const Observation& seen, Orders& orders) {
  if (order_undo(climb, seen.time, orders)) return;
  if (climb.phase == Climb::Phase::climbing || climb.phase == Climb::Phase::standing) climb_on(climb, seen, orders);
  if (climb.phase == Climb::Phase::returning) watch_return(climb, seen, orders);
  if (climb.phase != Climb::Phase::ending || climb.waiting) return;
  if (order_undo(climb, seen.time, orders)) return;
  orders.push_back(order(Order::Kind::end, climb, seen.time, climb.end_reason));
}

Ladder::Evidence Ladder::judge(Climb& climb, const Observation& seen) {
  const std::string key = subject_key(climb.subject);
  const auto at = std::find_if(seen.subjects.begin(), seen.subjects.end(),
                               [&key](const Subject& s) { return subject_key(s) == key; });
  const Subject* subject = at == seen.subjects.end() ? nullptr : &*at;
  const Observation::Process* process = seen.process(climb.subject.process);
  const bool is_process = climb.subject.process.pid != 0;
  if (is_process && (process == nullptr ? !climb.resumed : process->ended)) return Evidence::gone;
  std::string why = "the alert has ended";
  if (subject != nullptr) {
    why = why_not(*climb.rule, config_, *subject);
    if (why.empty()) {
      climb.subject = *subject;
      climb.lost_since.reset();
      climb.resumed = false;
      return Evidence::holds;
    }
  }
  // Growth that we stopped does not appear in any verdict. In that case the evidence is the memory still held.
  if (!climb.dry_run && stops_growth(climb) && process != nullptr) {
    climb.resumed = false;
    if (static_cast<double>(process->used_bytes) >= kStillHeld * static_cast<double>(climb.held_used_bytes)) {
      climb.lost_since.reset();
      return Evidence::holds;
    }
    why = "the memory was released";
  }
  if (!climb.lost_since) climb.lost_since = seen.time;
  const double patience_s = climb.resumed ? kResume_s : subject != nullptr ? kFlicker_s : 0;
  if (seconds_between(*climb.lost_since, seen.time) < patience_s) return Evidence::unclear;
  climb.end_reason = "the evidence no longer holds: " + why;
  return Evidence::lost;
}

double Ladder::needs_s(const Policies& policies) {
  double needs_s = 0;
  for (const Policy& policy : policies.rules) {
    if (policy.when.trouble != Trouble::leak) continue;
    needs_s = std::max(needs_s, policy.when.ends_within_s.value_or(0));
    if (const auto steps_s = act::needs_s(policy, 0))
      needs_s = std::max(needs_s, policy.when.held_for_s.value_or(0) + wait_s(policy, 0) + *steps_s);
  }
  return needs_s;
}

bool Ladder::is_due(const Climb& climb, const Step& step, Timestamp now) {
  const bool waits_for_work =
      std::any_of(climb.rule->steps.begin(), climb.rule->steps.begin() + static_cast<std::ptrdiff_t>(climb.step),
                  [](const Step& earlier) { return earlier.action->traits.asks_to_save; });
  const double wait_s = climb.subject.has_saved && waits_for_work ? 0 : act::wait_s(*climb.rule, climb.step);
  if (seconds_between(climb.step_since, now) < wait_s) return false;
  if (!step.usually_takes_s || !climb.subject.ends_in_s || stops_growth(climb)) return true;
  return climb.subject.ends_in_s->low <= act::needs_s(*climb.rule, climb.step).value_or(0);
}

/// Applies the limits; the reason for refusing a step is reported once.
bool Ladder::may_step(Climb& climb, const Step& step, Timestamp now, Orders& orders) {
  const ActionTraits& traits = step.action->traits;
  if (traits.needs_process) {
    std::string why = not_owned(*climb.rule, climb.subject.user, own_user_);
    if (why.empty()) why = not_named(*climb.rule, climb.subject);
    if (!why.empty()) {
      leave(climb, step, now, orders, "refused", why);
      climb.phase = Climb::Phase::standing;
      return false;
    }
  }
  if (traits.is_free) return true;
  ActAhead act{climb.subject.node, {}};
  if (traits.counts_as_retry && step.action->workload != nullptr)
    act.work = step.action->workload(climb.subject, step.arguments);
  const Limits::Answer answer = limits_.ask(act, now);
  if (answer.why.empty()) return true;
  if (answer.opens) {
    orders.push_back(breaker_order(now, "breaker_opened", limits_.breaker()->why));
    orders.back().dry_run = climb.dry_run;
  }
  const bool is_refused = answer.then == Limit::Then::refuse;
  if (is_refused) climb.phase = Climb::Phase::standing;
  if (is_refused || !std::exchange(climb.limit_reported, true))
    leave(climb, step, now, orders, is_refused ? "refused" : "waits", answer.why);
  return false;
}

void Ladder::climb_on(Climb& climb, const Observation& seen, Orders& orders) {
  const Evidence evidence = judge(climb, seen);
  if (evidence == Evidence::lost) return wind_down(climb, climb.end_reason);
  if (evidence == Evidence::gone) {
    climb.end_reason.clear();
    if (climb.pending && climb.rule && climb.step < climb.rule->steps.size()) {
      const Step& step = climb.rule->steps[climb.step];
      Order act = order(Order::Kind::act, climb, seen.time);
      act.action = step.action->name;
      act.arguments = step.arguments;
      act.plan = std::exchange(climb.pending, std::nullopt);
      act.has_ended = true;
      orders.push_back(std::move(act));
      climb.waiting = true;
      return;
    }
    if (!climb.ended_process) return wind_down(climb, "the process ended by itself");
    if (!climb.unattributed_bytes || climb.dry_run) return wind_down(climb, "the process has ended");
    climb.phase = Climb::Phase::returning;
    climb.returning_since = seen.time;
    return;
  }
  if (evidence == Evidence::unclear) return;
  const std::size_t count = climb.rule->steps.size();
  if (climb.phase == Climb::Phase::standing || climb.step >= count) {
    const bool over =
        climb.ended_process && !climb.dry_run && seconds_between(climb.step_since, seen.time) >= kReturn_s;
    if (over && !std::exchange(climb.still_running_reported, true))
      report(climb, seen.time, orders,
             fmt::format("{} is still running after the last step", subject_words(climb.subject)), true);
    climb.phase = Climb::Phase::standing;
    return;
  }
  const Step& step = climb.rule->steps[climb.step];
  if (!is_due(climb, step, seen.time)) return;
  if (step.action->traits.needs_process && climb.subject.process.pid == 0) {
    leave(climb, step, seen.time, orders, "skipped", "no visible process explains the growth");
    ++climb.step;
    climb.step_since = seen.time;
    return;
  }
  if (!may_step(climb, step, seen.time, orders)) return;
  climb.limit_reported = false;
  if (!step.action->traits.is_free) limits_.count_act(seen.time, climb.subject.node);
  if (step.action->traits.ends_process && climb.subject.process.pid != 0) {
    const auto* device = seen.device({climb.subject.device_id, climb.subject.process.host});
    if (device != nullptr) climb.unattributed_bytes = device->used_bytes - device->by_processes_bytes;
    climb.process_bytes = static_cast<double>(climb.subject.used_bytes);
    climb.subject.unattributed_bytes = climb.unattributed_bytes;
  }
  if (step.action->traits.stops_growth && climb.held.empty())
    if (const auto* process = seen.process(climb.subject.process)) climb.held_used_bytes = process->used_bytes;
  Order act = order(Order::Kind::act, climb, seen.time);
  act.action = step.action->name;
  act.arguments = step.arguments;
  act.plan = std::exchange(climb.pending, std::nullopt);
  orders.push_back(std::move(act));
  climb.waiting = true;
}

/// Acts on the node stay, because the reason for them remains: a person must undo them. Returns a text about that, or
/// an empty one.
std::string Ladder::leave_node(Climb& climb) {
  std::string left;
  std::erase_if(climb.held, [&left](const Climb::Held& held) {
    const ActionInfo* info = find_action(held.action);
    const bool is_of_node = info != nullptr && !info->traits.needs_process;
    if (is_of_node)
      left += fmt::format("{}'{}'", left.empty() ? "; not undone until somebody checks: " : ", ", held.action);
    return is_of_node;
  });
  return left;
}

void Ladder::watch_return(Climb& climb, const Observation& seen, Orders& orders) {
  const auto* device = seen.device({climb.subject.device_id, climb.subject.process.host});
  if (device == nullptr)
    return wind_down(
        climb, "the process has ended; its device does not show whether the memory was freed" + leave_node(climb));
  const double left = device->used_bytes - device->by_processes_bytes - *climb.unattributed_bytes;
  const double slack = std::max(kReturnSlack_bytes, kReturnSlack * climb.process_bytes);
  const double passed_s = seconds_between(*climb.returning_since, seen.time);
  if (left <= slack)
    return wind_down(climb,
                     fmt::format("the process has ended, and its {} were freed", format_bytes(climb.process_bytes)));
  if (passed_s < kReturn_s) return;
  report(climb, seen.time, orders,
         fmt::format("{} of memory were not freed within {} of the end of {}{}", format_bytes(left),
                     format_span(passed_s), subject_words(climb.subject), leave_node(climb)),
         true);
  wind_down(climb, "the process has ended, but its memory was not freed");
}

void Ladder::take_result(const Order& order, const ActResult& result) {
  Climb* climb = find(order.climb);
  if (climb == nullptr || !climb->waiting) return;
  climb->waiting = false;
  const ActionInfo* info = find_action(order.action);
  if (info == nullptr) return;
  // A freeze that an earlier run may have done counts as in force.
  const bool is_held = std::any_of(climb->held.begin(), climb->held.end(),
                                   [&order](const Climb::Held& held) { return held.step == order.step; });
  if (!result.undo.empty() && !is_held) climb->held.push_back({order.step, order.action, result.undo, 0});
  if (climb->phase == Climb::Phase::ending) {
    climb->unwind = true;  // it was being wound down in the meantime
    return;
  }
  if (result.kind == ActResult::Kind::refused ||
      (result.kind == ActResult::Kind::failed && climb->rule && climb->rule->steps[order.step].stops_on_failure)) {
    climb->phase = Climb::Phase::standing;
    return;
  }
  climb->step = order.step + 1;
  climb->step_since = std::max(result.time, order.time);
  if (result.kind != ActResult::Kind::done) return;
  if (info->traits.ends_process) climb->ended_process = true;
  if (info->traits.counts_as_retry && info->workload != nullptr)
    limits_.count_restart(climb->step_since, info->workload(climb->subject, order.arguments));
  if (info->traits.needs_running && !climb->held.empty()) climb->unwind = true;
}

void Ladder::take_undo_result(const Order& order, const std::string& failure) {
  Climb* climb = find(order.climb);
  if (climb == nullptr || !climb->waiting) return;
  climb->waiting = false;
  const auto at = std::find_if(climb->held.begin(), climb->held.end(),
                               [&order](const Climb::Held& held) { return held.step == order.step; });
  if (at == climb->held.end()) return;
  if (failure.empty() || ++at->failures >= kMostUndoFailures) climb->held.erase(at);
}

}  // namespace vramtrack::act
