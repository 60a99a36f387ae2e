// Ladder: decides which step of which policy is due for which process. Pure: it takes Views and returns orders, and the
// caller that carries out an order reports the result. Only that caller differs between `policy test` and the agent.
//
//            matches                    due, evidence holds            all steps done
//   subject ---------> climb: step 0 ---------------------> step n --------------> stands, until the evidence ends
//                        |                                                          |
//                        |  evidence gone, policy changed, off                      | process ended after an act
//                        '-------> freezing and throttling are undone ---> end <--- its memory is watched
//
// There is one climb per process. While an order is out, its climb waits, so nothing overtakes it.
//
// The climb of a claim (an alert of a fleet) exists before its subject: it begins when evidence confirms the claim and
// a policy matches, and it is remembered after its end, so that a claim begins at most one ladder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "act/claim.hpp"
#include "act/limit.hpp"
#include "act/policy.hpp"
#include "act/subject.hpp"
#include "core/text_hash.hpp"

namespace vramtrack::act {

/// The parts of a View that decisions depend on.
struct Observation {
  struct Process {
    ProcessKey key;
    bool ended = false;
    std::uint64_t used_bytes = 0;  ///< on all devices
  };
  struct Device {
    DeviceKey key;
    double used_bytes = 0;
    double by_processes_bytes = 0;  ///< the part held by living processes
  };
  Timestamp time;
  std::vector<Subject> subjects;
  std::vector<Process> processes;
  std::vector<Device> devices;
  /// The reason why nothing confirms a claim now.
  struct Unproven {
    std::string claim;
    std::string reason;  ///< one word, for the metrics
    std::string why;     ///< the same for people
  };
  std::vector<Unproven> unproven;
  /// Nothing is known now about the processes on these: their climbs do not change. Names as in ProcessKey::host.
  std::vector<std::string> silent_hosts;

  [[nodiscard]] bool is_silent(const std::string& host) const;
  [[nodiscard]] const Process* process(const ProcessKey& key) const;
  [[nodiscard]] const Device* device(const DeviceKey& key) const;
};
/// Pure; O(series).
Observation observe(const View& view);

/// The progress of one process (or device) on the ladder.
struct Climb {
  enum class Phase : std::uint8_t {
    claimed,  ///< for a claim that nothing has confirmed, or whose subject has another climb (`with`)
    climbing,
    standing,   ///< no further step; it stays until the evidence ends, so that it does not start over
    returning,  ///< its process has ended after an act; waits for the memory to be freed
    ending,
    over,  ///< for a claim, which is remembered
  };
  /// An act that has to be undone.
  struct Held {
    std::size_t step = 0;
    std::string action;
    std::string undo;
    int failures = 0;
  };

  std::string id;                      ///< the act's id, unique on this machine
  std::string policy;                  ///< its name
  std::shared_ptr<const Policy> rule;  ///< null: it is from an earlier run and has changed; only undoing is left
  Subject subject;                     ///< with the latest evidence
  Phase phase = Phase::climbing;
  std::size_t step = 0;  ///< index of the next step
  Timestamp began;
  Timestamp step_since;  ///< when the previous step was done; for the first step, `began`
  std::vector<Held> held;
  bool unwind = false;         ///< held acts are undone before anything else
  bool waiting = false;        ///< an order is out
  bool evidence_holds = true;  ///< in the last View, even while an order is out; checked right before the act
  bool dry_run = false;
  bool resumed = false;                      ///< from an earlier run, and its evidence has not been seen in this one
  std::optional<ActPlan> pending;            ///< from an earlier run: the plan of `step`, perhaps carried out already
  std::optional<Timestamp> lost_since;       ///< since when the conditions have not held
  std::uint64_t held_used_bytes = 0;         ///< at the time when growth was first stopped
  bool ended_process = false;                ///< an act that ends the process was done
  std::optional<double> unattributed_bytes;  ///< on its device before that act: memory held by no process
  double process_bytes = 0;                  ///< memory held by this process before that act
  std::optional<Timestamp> returning_since;
  bool limit_reported = false;
  bool still_running_reported = false;
  std::string end_reason;
  std::optional<Claim> claim;
  std::string with;     ///< for a claim that is waiting: the climb of its subject
  std::string refusal;  ///< likewise: Unproven::reason; empty: none given
  std::string why;      ///< the same reason, for people

  [[nodiscard]] bool has_subject() const { return phase != Phase::claimed && phase != Phase::over; }
};

/// An action to take or an entry to record.
struct Order {
  enum class Kind : std::uint8_t {
    begin,     ///< a climb begins: `text` is the evidence
    act,       ///< `step` is due; report the result with take_result()
    undo,      ///< `plan->undo` of `step` is due, because of `text`; report the result with take_undo_result()
    not_done,  ///< the step `action` is due but not taken, because of `text`; `event`: "refused", "skipped" or "waits"
    report,    ///< an entry for the record; with `is_for_people`, also a notification
    end,       ///< a climb has ended: `text` is the reason
  };
  Kind kind = Kind::report;
  std::string climb;
  std::string policy;
  std::string policy_text;  ///< for begin
  Subject subject;
  std::size_t step = 0;
  std::string action;      ///< for act, undo and not_done
  std::string_view event;  ///< for not_done: the event of its record entry; for say, if it is not "say"
  std::string reason;      ///< for say: Unproven::reason
  StepArguments arguments;
  std::optional<ActPlan> plan;  ///< for undo, and for an act that an earlier run began
  std::string text;
  Timestamp time;
  bool dry_run = false;
  bool is_for_people = false;
  bool has_ended =
      false;  ///< for an act with a plan: its process has ended, so only the remaining part of the act is still due

  [[nodiscard]] std::string act_id() const;  ///< for act and undo
};

/// The order to record that the breaker has opened ("breaker_opened") or was closed ("breaker_closed").
Order breaker_order(Timestamp now, std::string_view event, std::string text);

/// The result of an act.
struct ActResult {
  enum class Kind : std::uint8_t {
    done,     ///< or, in a dry run, would have been done
    failed,   ///< the next step follows, unless the step stops on failure
    refused,  ///< it must not be done: the climb does not continue
  };
  Kind kind = Kind::done;
  std::string text;
  std::string undo;  ///< for done: the data needed to undo it; empty: nothing to undo
  Timestamp time;
};

/// Not thread-safe; copies are independent.
class Ladder {
 public:
  /// A condition that fails for less than this between two steps counts as noise.
  static constexpr double kFlicker_s = 60;
  /// After a start, the evidence for an earlier run's climb must be seen again within this time.
  static constexpr double kResume_s = 900;
  /// The memory of a process that has ended may take this long to be freed.
  static constexpr double kReturn_s = 60;
  static constexpr double kRetryWindow_s = 86400;

  /// How long before memory runs out the policies need their alerts: until their last step on the process, or for the
  /// longest `ends-within`; 0: they set no time.
  static double needs_s(const Policies& policies);

  /// `own_user`: the user that this program runs as.
  Ladder(Policies policies, ActConfig config, std::string own_user);

  /// Processes the current observation. Returns orders in the sequence in which they must be carried out.
  std::vector<Order> advance(const Observation& seen);
  /// Accepts the result of an order of kind act, once.
  void take_result(const Order& order, const ActResult& result);
  /// Accepts the result of an order of kind undo, once. `failure` empty: it was undone.
  void take_undo_result(const Order& order, const std::string& failure);

  /// The acts in force, in the order in which they must be undone, with `why` as the reason.
  [[nodiscard]] std::vector<Order> held(Timestamp now, const std::string& why) const;

  /// Replaces policies and configuration. Climbs of policies that have changed are wound down.
  void use(Policies policies, ActConfig config);
  /// While off, nothing is done and acts in force are undone; `why` is for the record.
  void switch_off(bool off, std::string why = {});
  [[nodiscard]] bool is_off() const { return off_; }
  /// Adds the limits of a fleet to those of the configuration. Limits are checked last, right before a step that
  /// changes something is ordered; a waiting step checks again.
  void limit_by(std::vector<Limit> limits) { limits_.add(std::move(limits)); }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  void close_breaker() { limits_.close_breaker(); }
  /// Accepts a claim that fires, or news of a known one. At most kMostClaims are remembered: finished claims are
  /// dropped first, and among them those without news for the longest time.
  static constexpr std::size_t kMostClaims = 4096;
  void take(const Claim& claim);

  // State from an earlier run. REQUIRES: advance() has not been called yet.
  void restore(Climb climb);
  [[nodiscard]] Limits& restored_limits() { return limits_; }

  [[nodiscard]] const std::vector<Climb>& climbs() const { return climbs_; }
  [[nodiscard]] const Policies& policies() const { return policies_; }
  [[nodiscard]] const ActConfig& config() const { return config_; }
  /// The rule with that name and text; null if there is none.
  [[nodiscard]] std::shared_ptr<const Policy> rule(const std::string& name, const std::string& text_hash) const;

 private:
  enum class Evidence : std::uint8_t { holds, unclear, lost, gone };
  using Orders = std::vector<Order>;

  void step_forward(Climb& climb, const Observation& seen, Orders& orders);
  void climb_on(Climb& climb, const Observation& seen, Orders& orders);
  void watch_return(Climb& climb, const Observation& seen, Orders& orders);
  Evidence judge(Climb& climb, const Observation& seen);
  static bool is_due(const Climb& climb, const Step& step, Timestamp now);
  bool may_step(Climb& climb, const Step& step, Timestamp now, Orders& orders);
  Climb& begin(Climb* claimed, const Subject& subject, const Policy& policy, Timestamp now, Orders& orders);
  void see(const Subject& subject, const Observation& seen, Orders& orders);
  void refuse(Climb& climb, Timestamp now, Orders& orders, const std::string& reason, std::string why) const;
  void drop_ended();
  void wind_down(Climb& climb, std::string why);
  static std::string leave_node(Climb& climb);
  Climb* find(const std::string& id);
  bool order_undo(Climb& climb, Timestamp now, Orders& orders);
  static Order undo_of(const Climb& climb, const Climb::Held& held, Timestamp now, std::string why);
  static Order order(Order::Kind kind, const Climb& climb, Timestamp now, std::string text = {});
  void report(const Climb& climb, Timestamp now, Orders& orders, std::string text, bool is_for_people = false) const;
  void leave(const Climb& climb, const Step& step, Timestamp now, Orders& orders, std::string_view event,
             std::string text) const;

  Policies policies_;
  ActConfig config_;
  std::string own_user_;
  std::map<std::string, std::shared_ptr<const Policy>> rules_;
  std::vector<Climb> climbs_;
  Limits limits_;
  bool off_ = false;
  std::string off_why_;
};

}  // namespace vramtrack::act
