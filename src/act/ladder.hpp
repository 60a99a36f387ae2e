// Ladder: which step of which policy is due for which process. Pure: Views come in, orders go out, and whoever carries
// an order out says what became of it. `policy test` and the agent differ in nothing else.
//
//            matches                    due, evidence holds            all steps done
//   subject ---------> climb: step 0 ------------------------> step n -----------------> stands, until the evidence
//   ends
//                        |  evidence gone, policy changed, off         process ended after an act |
//                        '-------> what was frozen or throttled is undone -----> end <---- its memory is watched
//
// One climb a process. An order that is out keeps its climb waiting, so nothing overtakes it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "act/policy.hpp"
#include "act/subject.hpp"
#include "core/text_hash.hpp"

namespace vramtrack::act {

/// What a View shows that decisions rest on.
struct Observation {
  struct Process {
    ProcessKey key;
    bool ended = false;
    std::uint64_t used_bytes = 0;  ///< on all devices
  };
  struct Device {
    DeviceKey key;
    double used_bytes = 0;
    double by_processes_bytes = 0;  ///< what the living processes hold of it
  };
  Timestamp time;
  std::vector<Subject> subjects;
  std::vector<Process> processes;
  std::vector<Device> devices;
  /// Of what lies on these nothing is known now: their climbs stay where they are. Names as in ProcessKey::host.
  std::vector<std::string> silent_hosts;

  [[nodiscard]] bool is_silent(const std::string& host) const;
  [[nodiscard]] const Process* process(const ProcessKey& key) const;
  [[nodiscard]] const Device* device(const DeviceKey& key) const;
};
/// Pure; O(series).
Observation observe(const View& view);

/// One process (or device) on its way up.
struct Climb {
  enum class Phase : std::uint8_t {
    climbing,
    standing,   ///< no further step; it stays until the evidence ends, so that it does not begin again
    returning,  ///< its process has ended after an act: is the memory back?
    ending,
  };
  /// An act that has to be undone.
  struct Held {
    std::size_t step = 0;
    std::string action;
    std::string undo;
    int failures = 0;
  };

  std::string id;                      ///< unique on this machine
  std::string policy;                  ///< its name
  std::shared_ptr<const Policy> rule;  ///< null: of an earlier run, and changed since; then nothing but undoing is left
  Subject subject;                     ///< the last evidence
  Phase phase = Phase::climbing;
  std::size_t step = 0;  ///< the next one
  Timestamp began;
  Timestamp step_since;  ///< when the step before was done; of the first: `began`
  std::vector<Held> held;
  bool unwind = false;         ///< what is held is undone before anything else
  bool waiting = false;        ///< an order is out
  bool evidence_holds = true;  ///< as of the last View, while an order is out, too: looked at right before the act
  bool dry_run = false;
  bool resumed = false;                      ///< of an earlier run: its evidence has not been seen in this one
  std::optional<ActPlan> pending;            ///< of an earlier run: the plan of `step`, which may have been carried out
  std::optional<Timestamp> lost_since;       ///< the conditions do not hold since then
  std::uint64_t held_used_bytes = 0;         ///< when growth was first stopped
  bool ended_process = false;                ///< an act that ends the process was done
  std::optional<double> unattributed_bytes;  ///< of its device before that act: what no process held
  double process_bytes = 0;                  ///< and what this one held
  std::optional<Timestamp> returning_since;
  bool told_limit = false;
  bool told_still_runs = false;
  std::string end_reason;
};

/// What is to be done or written down.
struct Order {
  enum class Kind : std::uint8_t {
    begin,  ///< a climb begins: `text` is the evidence
    act,    ///< `step` is due; settle() what became of it
    undo,   ///< `plan->undo` of `step` is due, because of `text`; settle_undo() what became of it
    say,    ///< something worth writing down; `is_for_people`: and telling
    end,    ///< a climb has ended: `text` says why
  };
  Kind kind = Kind::say;
  std::string climb;
  std::string policy;
  std::string policy_text;  ///< of begin
  Subject subject;
  std::size_t step = 0;
  std::string action;  ///< of act and undo
  StepArguments arguments;
  std::optional<ActPlan> plan;  ///< of undo; of an act that an earlier run began
  std::string text;
  Timestamp time;
  bool dry_run = false;
  bool is_for_people = false;
  bool has_ended =
      false;  ///< of an act with a plan: its process has ended, so what is left of the act is all that is due

  [[nodiscard]] std::string act_id() const;  ///< of act and undo
};

/// What became of an act.
struct Settled {
  enum class Kind : std::uint8_t {
    done,     ///< or, in a dry run, would have been
    failed,   ///< the next step follows, unless the step stops on failure
    refused,  ///< it must not be done: the climb goes no further
  };
  Kind kind = Kind::done;
  std::string text;
  std::string undo;  ///< of done: what it takes to undo it; empty: nothing to undo
  Timestamp time;
};

/// What else a step that is due waits for, in words; empty: nothing, and then it counts as done.
using StepLimit = std::function<std::string(const Subject& subject, const Step& step, Timestamp now)>;

/// Not thread-safe; copies are independent.
class Ladder {
 public:
  /// A condition that fails for less than this between two steps is noise.
  static constexpr double kFlicker_s = 60;
  /// After a start, the evidence of an earlier run's climb has so long to be seen again.
  static constexpr double kResume_s = 900;
  /// So long the memory of a process that has ended may take to come back.
  static constexpr double kReturn_s = 60;
  /// A checkpoint is asked for when memory may end within its usual length times this, plus kCheckpointMargin_s.
  static constexpr double kCheckpointFactor = 1.25;
  static constexpr double kCheckpointMargin_s = 10;
  static constexpr double kRetryWindow_s = 86400;

  /// `own_user`: whom this program runs as.
  Ladder(Policies policies, ActConfig config, std::string own_user);

  /// Takes what is seen now. Orders are in the order in which they must be carried out.
  std::vector<Order> advance(const Observation& seen);
  /// Of an order of kind act, once.
  void settle(const Order& order, const Settled& settled);
  /// Of one of kind undo, once. `failure` empty: it was undone.
  void settle_undo(const Order& order, const std::string& failure);

  /// From now on these. Climbs of policies that have changed are wound down.
  void use(Policies policies, ActConfig config);
  /// While off, nothing is done and what is held is undone; `why` for the record.
  void switch_off(bool off, std::string why = {});
  [[nodiscard]] bool is_off() const { return off_; }
  /// Asked last, right before a step that changes something is ordered; a step that waits is asked for again.
  void limit_by(StepLimit limit) { limit_ = std::move(limit); }

  // Of an earlier run. REQUIRES: advance() was not called yet.
  void restore(Climb climb);
  void restore_act(Timestamp time) { acts_.push_back(time); }
  void restore_retry(const std::string& workload, Timestamp time) { retries_[workload].push_back(time); }

  [[nodiscard]] const std::vector<Climb>& climbs() const { return climbs_; }
  [[nodiscard]] const Policies& policies() const { return policies_; }
  [[nodiscard]] const ActConfig& config() const { return config_; }
  /// The rule of that name and text; null where there is none.
  [[nodiscard]] std::shared_ptr<const Policy> rule(const std::string& name, const std::string& text_hash) const;

 private:
  enum class Evidence : std::uint8_t { holds, unclear, lost, gone };
  using Orders = std::vector<Order>;

  void step_forward(Climb& climb, const Observation& seen, Orders& orders);
  void climb_on(Climb& climb, const Observation& seen, Orders& orders);
  void watch_return(Climb& climb, const Observation& seen, Orders& orders);
  Evidence judge(Climb& climb, const Observation& seen);
  bool is_due(const Climb& climb, const Step& step, Timestamp now) const;
  bool may_step(Climb& climb, const Step& step, Timestamp now, Orders& orders);
  void begin(const Subject& subject, const Policy& policy, Timestamp now, Orders& orders);
  void wind_down(Climb& climb, std::string why);
  static std::string leave_node(Climb& climb);
  Climb* find(const std::string& id);
  bool order_undo(Climb& climb, Timestamp now, Orders& orders);
  static Order order(Order::Kind kind, const Climb& climb, Timestamp now, std::string text = {});
  void say(const Climb& climb, Timestamp now, Orders& orders, std::string text, bool is_for_people = false) const;
  void forget_old(Timestamp now);

  Policies policies_;
  ActConfig config_;
  std::string own_user_;
  std::map<std::string, std::shared_ptr<const Policy>> rules_;
  std::vector<Climb> climbs_;
  std::deque<Timestamp> acts_;
  std::map<std::string, std::deque<Timestamp>> retries_;
  StepLimit limit_;
  bool off_ = false;
  std::string off_why_;
};

}  // namespace vramtrack::act
